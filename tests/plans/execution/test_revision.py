"""Edits put into effect: the plan, the decisions about it, and what the log says."""

from __future__ import annotations

import pytest

from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.revision import put_into_effect
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, statuses, step

SET_PATH: dict[str, object] = {"op": "set", "stepId": "it", "path": "args.path", "value": "other.txt"}
REMOVE: dict[str, object] = {"op": "remove", "stepId": "it"}


def waiting(schedule: Schedule) -> list[str]:
    return list(schedule.awaiting)


def asking() -> Schedule:
    """`it` was approved before it started, and awaits approval now."""
    schedule = begun(step("it", tool="delete_file", args={"path": "a.txt"}), step("other"))
    approvals.decide(schedule.run, Decide(step_id="it", approved=True, by="ann"), NOW, "update")
    schedule.ask("it", NOW)
    return schedule


def edit(schedule: Schedule, *edits: dict[str, object], **more: object) -> None:
    message = Edits.model_validate({"edits": list(edits), **more})
    put_into_effect(schedule, revise(schedule.run, message, NOW), NOW)


def test_an_approval_of_other_arguments_is_void_and_the_step_is_ready_to_ask_again() -> None:
    schedule = asking()
    edit(schedule, SET_PATH, by="bob")
    assert schedule.run.decisions == {}
    assert list(schedule.ready) == ["other", "it"]
    assert waiting(schedule) == []
    kinds = [entry.kind for entry in schedule.run.log]
    assert kinds[-2:] == ["void", "edited"]
    assert schedule.run.log[-1].text.startswith("version 2 by bob: set it args.path")


def test_an_edit_of_another_step_leaves_the_approval() -> None:
    schedule = asking()
    edit(schedule, SET_PATH | {"stepId": "other", "path": "args.text", "value": "new"})
    assert list(schedule.run.decisions) == ["it"]
    assert waiting(schedule) == ["it"]


def test_arguments_an_approver_put_in_give_way_to_the_edited_ones() -> None:
    schedule = asking()
    schedule.run.steps["it"].args = {"path": "approver.txt"}
    edit(schedule, SET_PATH)
    assert schedule.run.steps["it"].model_dump()["args"] is None
    assert schedule.run.args_of(schedule.step("it")) == {"path": "other.txt"}


def test_what_was_decided_on_a_removed_step_goes_with_it() -> None:
    schedule = asking()
    edit(schedule, REMOVE)
    assert list(schedule.run.decisions) == []
    assert statuses(schedule.run) == {"other": "ready"}
    assert schedule.run.plan.version == 2
    assert [revision.version for revision in schedule.run.revisions][-1:] == [2]


@pytest.mark.parametrize(("must_sign", "who"), [(False, "ann@x.org (web)"), (True, "ann@x.org (web, verified)")])
def test_the_change_log_names_where_its_author_spoke_and_says_verified_only_where_decisions_are_signed(
    must_sign: bool, who: str
) -> None:
    schedule = asking()
    schedule.run.facts = schedule.run.facts.model_copy(update={"must_sign": must_sign})
    edit(schedule, SET_PATH, by="ann@x.org", via="web", verified=True)
    assert schedule.run.log[-1].text.startswith(f"version 2 by {who}: set it args.path")
    (change,) = PlanView.model_validate(plan_view(schedule.run, schedule)).changes
    assert change.who == who


def test_an_edit_of_before_says_nothing_of_it() -> None:
    schedule = asking()
    edit(schedule, SET_PATH, by="bob")
    (change,) = plan_view(schedule.run, schedule)["changes"]
    assert not {"via", "verified"} & set(change)

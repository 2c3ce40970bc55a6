"""Why a step asks: what the person who is asked is told, one reason for each rule that asks."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.feature import views_of_features
from plansurvive.plans.activity_io import Attempt, PastCall
from plansurvive.plans.change_log import Revision
from plansurvive.plans.execution.deciding.reasons import asker, reasons, remembered_scope
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.model.tool_spec import needs_approval
from plansurvive.plans.run.step_call import upcoming
from tests.plans.building import NOW, begun, step


def file(**fields: Any) -> Step:
    return step("s", tool="delete_file", args={"path": "a"}, **fields)


def note(**fields: Any) -> Step:
    return step("s", args={"text": "a"}, **fields)


def told(schedule: Schedule) -> list[str]:
    return reasons(schedule.run, schedule.step("s"), upcoming(schedule.run, schedule.step("s")).call)


def test_the_plan_says_so() -> None:
    assert told(begun(note(requires_approval=True))) == ["the plan says `requiresApproval: true`"]


def test_the_tool_asks_by_default() -> None:
    assert told(begun(file())) == ["delete_file needs approval by default"]


def test_only_some_calls_of_the_tool_ask() -> None:
    post = step("s", tool="http_request", args={"url": "https://x", "method": "POST"})
    assert told(begun(post)) == ["http_request needs approval with these arguments"]


def test_the_tool_found_a_file_that_the_run_does_not_know() -> None:
    schedule = begun(note())
    said = "a.txt exists and this run has neither created nor read it"
    attempt = Attempt(number=1, began=NOW, code="APPROVAL_REQUIRED", error=said)
    schedule.run.steps["s"].past = [PastCall(tool="note", args={}, result=said, time=NOW, attempt=attempt)]
    assert told(schedule) == [said]


def test_what_an_attempt_says_of_every_such_call_is_not_a_second_reason() -> None:
    schedule = begun(file())
    said = needs_approval("delete_file")
    attempt = Attempt(number=1, began=NOW, code="APPROVAL_REQUIRED", error=said)
    schedule.run.steps["s"].past = [PastCall(tool="delete_file", args={}, result=said, time=NOW, attempt=attempt)]
    assert told(schedule) == ["delete_file needs approval by default"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"facts": {"strict_approvals": True}},
            "the worker ignores waivers (PLANS_APPROVALS=strict)",
        ),
        ({"options": {"waivers": False}}, "no person had read the plan when it was started"),
        ({"edited": {"s": "rule"}}, "the step is not what the plan was started with"),
    ],
)
def test_a_waiver_that_does_not_count_is_explained(change: dict[str, Any], why: str) -> None:
    schedule = begun(file(requires_approval=False))
    run = schedule.run
    run.facts = run.facts.model_copy(update=change.get("facts", {}))
    run.options = run.options.model_copy(update=change.get("options", {}))
    run.edited = change.get("edited", {})
    assert told(schedule)[0] == f"`requiresApproval: false` does not count: {why}"


def test_what_was_denied_before_is_asked_again() -> None:
    schedule = begun(note())
    schedule.run.denied = ["s"]
    assert told(schedule)[0] == "it was denied in the previous run"


def test_a_changed_call_names_who_changed_it() -> None:
    schedule = begun(file())
    run = schedule.run
    run.edited = {"s": "call"}
    run.revisions = [Revision(version=2, by="ann", time=NOW, ops=["set"], diff=["~ s.args.path: 'b' -> 'a'"])]
    assert told(schedule)[-1].startswith("the call was changed by ann in version 2 since")


def test_an_llm_had_its_hand_in_it() -> None:
    schedule = begun(file())
    schedule.run.request = "delete it"
    schedule.run.steps["s"].mended = "retry: another path"
    assert told(schedule)[1:] == ["an LLM recovered the step from its last failure", "an LLM wrote this plan"]
    schedule.run.literal = True
    assert told(schedule)[0] == "an agent's model chose this call"


@pytest.mark.uses("planning", "budget")
def test_a_proposal_says_what_kind_it_is() -> None:
    schedule = begun(file())
    schedule.run.views = views_of_features()
    schedule.run.steps["s"].proposal = {"recovery": {"action": "retry"}}
    assert told(schedule) == ["an LLM proposes how to recover the step, which failed"]
    schedule.run.steps["s"].proposal = {"budget": "100 of 100 tokens"}
    assert told(schedule) == ["the plan's LLM budget is used up"]


def test_the_scope_of_always_is_spelled_out() -> None:
    schedule = begun(file(), title="Nightly")
    run, one = schedule.run, schedule.step("s")
    scope = remembered_scope(run, one, upcoming(run, one).call)
    assert scope.startswith("every call of delete_file in ")
    assert "whatever its arguments, less those of steps that say `requiresApproval: true`, until plan p ends" in scope
    run.facts = run.facts.model_copy(update={"strict_approvals": True})
    assert remembered_scope(run, one, upcoming(run, one).call) == "", "nothing is remembered there"
    run.facts = run.facts.model_copy(update={"strict_approvals": False})
    run.unwaived[one.id] = "rule 'a' of the policy asks"
    assert remembered_scope(run, one, upcoming(run, one).call) == "", "against a policy it does not count"
    run.options = run.options.model_copy(update={"by": "ann"})
    assert asker(run) == 'plan p ("Nightly"), started by ann'


def test_a_title_or_a_name_is_not_taken_for_the_sentence_that_says_who_asks() -> None:
    run = begun(file(), title='x"), started by alice').run
    run.options = run.options.model_copy(update={"by": "bob, for step 's' of plan q"})
    assert asker(run) == """plan p ("x\\"), started by alice"), started by "bob, for step 's' of plan q\""""

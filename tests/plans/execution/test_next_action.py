"""What happens next to a step: each outcome, and the order in which the checks come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition.durable_tools import DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import (
    Ask,
    Begin,
    Call,
    Expire,
    Fail,
    NextAction,
    Skip,
    Sleep,
    after_failure,
    after_timeout,
    next_action,
)
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.expressions.evaluation import MAX_ARGS_CHARACTERS
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import ApprovalRule, Step
from plansurvive.plans.run import Options, Result, Run
from plansurvive.plans.run.step_call import StepCall, digest_of
from tests.plans.building import NOW, TOOLS, begun, completed, run_of, spec, step

_TEXT = {"type": "string"}
AGENT_TOOL = spec("agent", {"objective": _TEXT, "outputSchema": {"type": "object", "default": {}}}, durable=True)
ASKED: dict[str, Any] = {"tool": "delete_file", "args": {"path": "a.txt"}}
MISSING: dict[str, Any] = {"tool": "note", "args": {"text": "$first.absent.part"}}


def ready(one: Step, value: Any = None, options: Options | None = None, **facts: Any) -> Schedule:
    """A plan in which `first` has that value, and the step is ready."""
    tools = Facts(tools={**TOOLS, "agent": AGENT_TOOL}, workspace="/w", **facts)
    schedule = begun(step("first"), one, facts=tools, options=options)
    schedule.start("first", NOW)
    schedule.settle("first", completed(value), NOW)
    return schedule


def decide(schedule: Schedule, approved: bool = True, **fields: Any) -> None:
    """A person decides on `it`."""
    message = Decide(step_id="it", approved=approved, **fields)
    approvals.decide(schedule.run, message, NOW, "update")


def call(tool: str, **args: Any) -> StepCall:
    """A call of a step that is bound to nothing, in the workspace of these tests."""
    return StepCall(tool, args, None, "/w", {})


def action(schedule: Schedule) -> NextAction:
    """What happens to `it`; deciding changes nothing."""
    before = schedule.run.model_dump_json()
    found = next_action(schedule, "it")
    assert schedule.run.model_dump_json() == before
    return found


def test_a_ready_step_is_called_with_its_references_filled_in() -> None:
    schedule = ready(step("it", tool="note", args={"text": "got {{first.x}}", "more": "$first.x"}), {"x": 5})
    match action(schedule):
        case Call(filled, values):
            assert filled.args == {"text": "got 5", "more": 5}
            assert filled.deferred == []
            assert values.inline == {"first": {"x": 5}}
        case other:
            pytest.fail(f"not called: {other}")


def test_a_large_value_is_left_to_the_activity() -> None:
    schedule = ready(step("it", tool="note", args={"text": "$first"}))
    result = schedule.run.steps["first"].result
    assert result is not None
    large = LargeValue(sha256="00", bytes=9_000, preview="x")
    schedule.run.steps["first"].result = result.model_copy(update={"large": large})
    found = action(schedule)
    assert isinstance(found, Call)
    assert found.filled.deferred == [["text"]]
    assert found.values.large == {"first": large}


def test_a_denied_step_is_skipped_and_blocks_what_depends_on_it() -> None:
    schedule = ready(step("it", **ASKED))
    decide(schedule, approved=False)
    assert action(schedule) == Skip(approvals.DENIED, opens=False, code="DENIED")


def test_a_step_whose_condition_is_not_met_is_skipped_and_opens_its_dependents() -> None:
    schedule = ready(step("it", "first", when="first.x == `1`"), {"x": 2})
    assert action(schedule) == Skip("condition not met: first.x == `1`")


def test_a_step_whose_condition_is_met_is_called() -> None:
    assert isinstance(action(ready(step("it", "first", when="first.x == `1`"), {"x": 1})), Call)


def test_a_condition_over_a_value_stored_elsewhere_fails_the_step() -> None:
    schedule = ready(step("it", "first", when="first.x == `1`"))
    result = schedule.run.steps["first"].result
    assert result is not None
    large = LargeValue(sha256="00", bytes=9_000, preview="x")
    schedule.run.steps["first"].result = result.model_copy(update={"large": large})
    found = action(schedule)
    assert isinstance(found, Fail)
    assert "9000 bytes, too large for a condition" in found.message


def test_a_reference_to_nothing_fails_the_step() -> None:
    found = action(ready(step("it", **MISSING), {"x": 1}))
    assert isinstance(found, Fail)
    assert found.code == "BAD_REFERENCE"


def test_arguments_that_multiply_without_end_fail_the_step() -> None:
    half = "x" * (MAX_ARGS_CHARACTERS // 2)
    found = action(ready(step("it", tool="note", args={"text": ["$first", "$first", "more"]}), half))
    assert isinstance(found, Fail)
    assert found.code == "ARGS_TOO_LARGE"


def test_a_tool_that_asks_by_default_asks_with_the_arguments_of_the_call() -> None:
    schedule = ready(step("it", tool="delete_file", args={"path": "$first"}), "b.txt")
    assert action(schedule) == Ask(call("delete_file", path="b.txt"))


def test_an_approved_step_is_called() -> None:
    schedule = ready(step("it", **ASKED))
    decide(schedule)
    assert isinstance(action(schedule), Call)


def test_an_approval_of_other_arguments_is_void_and_the_step_asks_again() -> None:
    schedule = ready(step("it", tool="delete_file", args={"path": "$first"}), "b.txt")
    schedule.ask("it", NOW)
    approvals.ask(schedule.run, "it", {"path": "other.txt"}, digest_of(call("delete_file", path="other.txt")))
    decide(schedule)
    schedule.answered("it")
    assert action(schedule) == Ask(call("delete_file", path="b.txt"), voids=True)


def test_a_waived_approval_is_not_asked_for() -> None:
    assert isinstance(action(ready(step("it", **ASKED), options=Options(approve_all=True))), Call)
    assert isinstance(action(ready(step("it", **ASKED, requires_approval=False))), Call)


def test_strict_approvals_ask_all_the_same() -> None:
    strict = ready(step("it", **ASKED), options=Options(approve_all=True), strict_approvals=True)
    assert isinstance(action(strict), Ask)


def test_an_agent_gets_the_step_delegated() -> None:
    schedule = ready(step("it", tool="agent", args={"objective": "about {{first}}"}), "cats")
    assert action(schedule) == Begin({"objective": "about cats"})


def test_arguments_that_are_wrong_once_they_are_filled_in_fail_the_step() -> None:
    schedule = ready(step("it", tool="agent", args={"objective": "about {{first}}"}), "dogs")
    schedule.run.language = Language(tools=[DurableTool("agent", problem=lambda args: f"no {args['objective'][6:]}")])
    assert action(schedule) == Fail("INVALID_ARGS", "Invalid args for agent: no dogs")


def test_a_sleep_is_a_timer() -> None:
    schedule = ready(step("it", tool="sleep", args={"seconds": "$first"}), 2)
    assert action(schedule) == Sleep(2.0)


@pytest.mark.parametrize("seconds", ["soon", -1, float("inf"), float("nan")])
def test_a_sleep_of_no_length_fails(seconds: Any) -> None:
    found = action(ready(step("it", tool="sleep", args={"seconds": "$first"}), seconds))
    assert isinstance(found, Fail)
    assert found.code == "INVALID_ARGS"


def test_a_sleep_for_a_value_stored_elsewhere_fails() -> None:
    schedule = ready(step("it", tool="sleep", args={"seconds": "$first"}))
    result = schedule.run.steps["first"].result
    assert result is not None
    large = LargeValue(sha256="00", bytes=9_000, preview="x")
    schedule.run.steps["first"].result = result.model_copy(update={"large": large})
    assert isinstance(action(schedule), Fail)


def test_the_arguments_of_an_agents_call_are_taken_as_they_stand() -> None:
    schedule = ready(step("it", tool="note", args={"text": "$nothing"}))
    schedule.run.literal = True
    found = action(schedule)
    assert isinstance(found, Call)
    assert found.filled.args == {"text": "$nothing"}


def test_a_denial_comes_before_the_condition_and_the_references() -> None:
    schedule = ready(step("it", "first", **MISSING, when="first.x == `1`"), {"x": 2})
    decide(schedule, approved=False)
    assert action(schedule) == Skip(approvals.DENIED, opens=False, code="DENIED")


def test_a_condition_comes_before_the_references() -> None:
    assert isinstance(action(ready(step("it", "first", **MISSING, when="first.x == `1`"), {"x": 2})), Skip)


def test_the_references_come_before_the_approval() -> None:
    failing = step("it", tool="delete_file", args={"path": "$first.absent.part"})
    assert isinstance(action(ready(failing, {"x": 1})), Fail)


def test_the_arguments_come_before_the_approval() -> None:
    assert isinstance(action(ready(step("it", tool="sleep", args={"seconds": "x"}, requires_approval=True))), Fail)


@pytest.mark.parametrize(
    "one", [{"tool": "agent", "args": {"objective": "x"}}, {"tool": "sleep", "args": {"seconds": 1}}]
)
def test_the_approval_comes_before_the_kind_of_the_tool(one: dict[str, Any]) -> None:
    assert isinstance(action(ready(step("it", **one, requires_approval=True))), Ask)


def failure(code: str) -> Result:
    return Result(ok=False, error="no", code=code, timestamp=NOW)


def running() -> Schedule:
    schedule = ready(step("it", tool="write_file", args={"path": "$first", "content": "x"}), "b.txt")
    schedule.start("it", NOW)
    return schedule


def test_a_tool_that_finds_that_it_needs_approval_asks() -> None:
    asked = Ask(call("write_file", path="b.txt", content="x"))
    assert after_failure(running(), "it", failure("APPROVAL_REQUIRED")) == asked


def test_any_other_failure_stands() -> None:
    assert after_failure(running(), "it", failure("TOOL_FAILED")) is None


def test_what_was_decided_or_stopped_does_not_ask_again() -> None:
    decided, stopped = running(), running()
    approvals_made = approvals.decide(run_of(step("it")), Decide(step_id="it", approved=True), NOW, "update")
    decided.run.decisions["it"] = approvals_made
    stopped.stop("enough", NOW)
    assert after_failure(decided, "it", failure("APPROVAL_REQUIRED")) is None
    assert after_failure(stopped, "it", failure("APPROVAL_REQUIRED")) is None


def test_arguments_that_cannot_be_filled_in_again_are_shown_as_written() -> None:
    schedule = running()
    schedule.run.steps["first"].result = None
    found = after_failure(schedule, "it", failure("APPROVAL_REQUIRED"))
    assert found == Ask(call("write_file", path="$first", content="x"))


def awaiting(on_timeout: str) -> Schedule:
    rule = ApprovalRule.model_validate({"timeout": 5, "onTimeout": on_timeout})
    schedule = ready(step("it", **ASKED, approval=rule))
    schedule.ask("it", NOW, NOW + timedelta(seconds=5))
    return schedule


def test_an_approval_that_timed_out_fails_the_step_where_its_rule_says_so() -> None:
    expired = Expire("step 'it': no decision within 5 s", "APPROVAL_TIMEOUT", "no decision within 5 s")
    assert after_timeout(awaiting("fail"), "it") == expired


@pytest.mark.parametrize(("on_timeout", "approved"), [("approve", True), ("deny", False)])
def test_or_decides_in_the_persons_place(on_timeout: str, approved: bool) -> None:
    decision = Decide(step_id="it", approved=approved, comment="no decision within 5 s")
    assert after_timeout(awaiting(on_timeout), "it") == decision


def test_a_timeout_that_comes_with_a_decision_or_too_late_does_nothing() -> None:
    decided, gone = awaiting("fail"), awaiting("fail")
    decide(decided)
    gone.answered("it")
    assert after_timeout(decided, "it") is None
    assert after_timeout(gone, "it") is None


def test_a_run_of_nothing_but_plain_values_is_enough() -> None:
    run = Run.of(run_of(step("it")).plan, Options(), Facts(tools=TOOLS), {})
    schedule = Schedule(run)
    schedule.begin(NOW)
    assert isinstance(next_action(schedule, "it"), Call)

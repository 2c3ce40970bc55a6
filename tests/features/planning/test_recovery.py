"""What the LLM may do about a failure: when it is asked, and its choice as edits of the plan."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.planning import recovery
from plansurvive.plans.llm.answers import Recovery
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Run
from tests.plans.building import NOW, begun, completed, run_of, step

FAILURE = Result(ok=False, error="it broke", code="TOOL_FAILED", timestamp=NOW)


def failing(*steps: Step, **fields: Any) -> tuple[Run, Step]:
    """A run whose step `a` failed and awaits its recovery."""
    schedule = begun(step("before"), step("a", "before", on_failure="ask_llm"), step("after", "a"), *steps, **fields)
    schedule.start("before", NOW)
    schedule.settle("before", completed("the value"), NOW)
    schedule.run.steps["before"].calls = 1
    schedule.start("a", NOW)
    schedule.run.steps["a"].failure = FAILURE
    schedule.ask("a", NOW, awaiting="recovery")
    return schedule.run, schedule.step("a")


def choice(action: str, **more: Any) -> Recovery:
    """What the LLM chose."""
    return Recovery.model_validate({"action": action, "reason": "it is best", **more})


@pytest.mark.parametrize("code", ["CANCELLED", "DENIED", "OUTCOME_UNKNOWN", "APPROVAL_TIMEOUT"])
def test_what_people_chose_and_what_may_have_happened_is_not_the_llms_to_mend(code: str) -> None:
    run, failed = failing()
    assert recovery.is_due(run, failed, FAILURE)
    assert not recovery.is_due(run, failed, FAILURE.model_copy(update={"code": code}))
    assert not recovery.is_due(run, step("after"), FAILURE)


def test_it_is_asked_twice_for_a_step_and_five_times_for_a_plan() -> None:
    run, failed = failing()
    run.steps["a"].recoveries = recovery.PER_STEP
    assert not recovery.is_due(run, failed, FAILURE)
    run.steps["a"].recoveries, run.recoveries = 0, recovery.PER_PLAN
    assert not recovery.is_due(run, failed, FAILURE)


def test_the_plans_default_counts_where_the_step_says_nothing() -> None:
    run = run_of(step("a"), step("b", on_failure="block"), defaults={"onFailure": "ask_llm"})
    assert recovery.is_due(run, run.plan.steps[0], FAILURE)
    assert not recovery.is_due(run, run.plan.steps[1], FAILURE)


def test_the_prompt_shows_step_error_history_and_the_remaining_plan() -> None:
    run, failed = failing()
    text = recovery.prompt(run, failed, FAILURE).user
    assert all(part in text for part in ("TOOL_FAILED: it broke", 'note {"text": []} [SUCCESS]: the value', '"after"'))


def test_a_retry_with_other_arguments_loses_the_waiver() -> None:
    run, _ = failing()
    waived = step("a", "before", requires_approval=False)
    edits = recovery.edits_of(run.plan, waived, choice("retry", args={"text": "x"}))
    assert [(edit.op, getattr(edit, "path", "")) for edit in edits] == [("set", "args"), ("set", "requiresApproval")]
    assert recovery.edits_of(run.plan, waived, choice("retry")) == []


def test_inserted_steps_come_before_the_step_and_are_as_critical() -> None:
    run, failed = failing(defaults={"critical": True})
    new = {"id": "fix", "tool": "note", "args": {"text": "x"}}
    revised = recovery.applied(run, failed, choice("insert", steps=[new]), NOW)
    assert revised is not None
    assert [each.id for each in revised.plan.steps] == ["before", "fix", "a", "after"]
    assert revised.plan.steps[2].depends_on == ["before", "fix"]
    assert revised.plan.steps[1].critical
    assert revised.revision.by == recovery.BY
    assert "it is best" in revised.revision.reason


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (choice("retry", args={}), "INVALID_ARGS"),
        (choice("insert", steps=[{"id": "x", "tool": "nope"}]), "UNKNOWN_TOOL"),
        (choice("insert", steps=[{"id": "after", "tool": "note", "args": {"text": ""}}]), "has a step 'after' already"),
        (choice("insert", steps=[{"id": "x", "tool": "note", "args": {"text": "$after"}}]), "PLAN_CYCLE"),
    ],
)
def test_a_choice_that_makes_no_sound_plan_is_told_to_the_llm(made: Recovery, told: str) -> None:
    run, failed = failing()
    assert told in " ".join(recovery.choice_problems(run, failed, made, NOW))


def test_a_choice_that_can_be_carried_out_has_no_problems() -> None:
    run, failed = failing()
    for made in (choice("retry"), choice("retry", args={"text": "y"}), choice("skip"), choice("abort")):
        assert recovery.choice_problems(run, failed, made, NOW) == []

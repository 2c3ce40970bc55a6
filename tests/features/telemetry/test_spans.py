"""The spans of an ended plan, from its record."""

from __future__ import annotations

from datetime import timedelta

from plansurvive.features.telemetry.spans import LONGEST, code_of, plan_spans
from plansurvive.features.telemetry.trace_context import Carried, of_step, of_workflow
from plansurvive.plans.run import Run, run_of, text_of
from tests.plans.building import NOW, begun, completed, failed, later, step

PLAN = of_workflow(None, "plan-p", "first", sampled=True)
CARRIED = Carried(PLAN, "", NOW)


def ended() -> Run:
    """Two steps that ran, one that failed, one that it blocked."""
    schedule = begun(step("a"), step("b", "a"), step("c", "a"), step("d", "c"))
    schedule.start("a", later(1))
    schedule.settle("a", completed("the value"), later(3))
    schedule.start("b", later(4))
    schedule.start("c", later(4))
    schedule.settle("b", completed("the value"), later(6))
    schedule.settle("c", failed("the error"), later(7))
    schedule.end(later(9))
    schedule.run.created = NOW
    return schedule.run


def test_each_step_that_began_is_a_span_below_the_plan() -> None:
    plan, *steps = plan_spans(ended(), CARRIED)
    assert (plan.name, plan.context, plan.parent) == ("plan", PLAN, "")
    assert [each.attributes["plans.step.id"] for each in steps] == ["a", "b", "c"]
    assert {each.parent for each in steps} == {PLAN.span_id}
    assert [each.context for each in steps] == [of_step(PLAN, name) for name in "abc"]


def test_spans_last_from_when_a_step_could_begin_until_its_end() -> None:
    plan, first, second, _ = plan_spans(ended(), CARRIED)
    assert (plan.began, plan.ended) == (NOW, later(9))
    assert first.ended == later(3)
    assert (second.began, second.ended) == (later(3), later(6))


def test_the_same_record_gives_the_same_spans_after_continue_as_new() -> None:
    run = ended()
    assert list(plan_spans(run_of(text_of(run)), CARRIED)) == list(plan_spans(run, CARRIED))


def test_a_failed_step_says_its_code_and_never_its_error() -> None:
    spans = {str(each.attributes.get("plans.step.id")): each for each in plan_spans(ended(), CARRIED)}
    assert (spans["a"].error, spans["c"].error) == ("", "TOOL_FAILED")
    assert "the value" not in str(spans)
    assert "the error" not in str(spans)


def test_a_code_that_is_a_text_is_not_taken_for_one() -> None:
    assert code_of("HTTP_STATUS", "OTHER") == "HTTP_STATUS"
    for text in ("the password is hunter2", "A" * 65, "", None, 7, "LOWER_case", "A\nB"):
        assert code_of(text, "OTHER") == "OTHER"


def test_ids_of_any_length_are_bounded() -> None:
    run = ended()
    run.plan = run.plan.model_copy(update={"id": "p" * 10_000})
    assert all(len(str(each.attributes["plans.plan.id"])) == LONGEST for each in plan_spans(run, CARRIED))


def test_steps_done_in_an_earlier_run_are_left_out_of_the_one_that_resumes_it() -> None:
    run = ended()
    started = Carried(PLAN, "", later(3) + timedelta(milliseconds=1))
    names = [each.attributes.get("plans.step.id") for each in plan_spans(run, started)]
    assert names == [None, "b", "c"]

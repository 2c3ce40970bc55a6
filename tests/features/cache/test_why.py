"""`plan why` explains every state of a step: what it waits for, why it failed or was skipped."""

from __future__ import annotations

from typing import Literal

import pytest

from plansurvive.features.cache.views import why
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Problem
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import Decision, PlanStatus, Result, Run, Status
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.views.text import text
from tests.plans.building import NOW, begun, completed, failed, later, run_of, skipped, step
from tests.plans.flow.player import Player, broken, note, plan


def said(run: Run, name: str = "a") -> list[str]:
    return why(run, name).text.split("\n")


def chain() -> Schedule:
    return begun(step("a"), step("b", uses=("a",)), step("c", uses=("b",)))


def test_a_failed_step_has_its_code_and_error_and_what_it_blocks_leads_there() -> None:
    schedule = chain()
    schedule.start("a", NOW)
    schedule.settle("a", failed("no such file"), NOW)
    assert said(schedule.run) == ["a: it failed (TOOL_FAILED): no such file"]
    never, *_, first = said(schedule.run, "c")
    assert never.startswith("c: it never starts: ")
    assert first == "a: it failed (TOOL_FAILED): no such file"


def test_a_lost_call_says_how_it_is_made_again_while_the_plan_runs_and_after_its_end() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.start("a", NOW)
    lost = Result(ok=False, error="the worker died", code="OUTCOME_UNKNOWN", timestamp=NOW)
    schedule.settle("a", Outcome(Status.FAILED, lost), NOW)
    again = "plan rerun p --from a calls it again"
    assert said(schedule.run)[1:] == [
        f"  check what it did; when the plan has ended, {again} (plan interrupt p ends it)"
    ]
    schedule.start("b", NOW)
    schedule.settle("b", completed(), NOW)
    schedule.end(NOW)
    assert said(schedule.run)[1:] == [f"  check what it did; {again}"]


def test_a_blocked_step_names_what_it_waits_for_and_how_that_stands() -> None:
    schedule = chain()
    schedule.start("a", NOW)
    assert said(schedule.run, "c") == [
        "c: it waits for b",
        "b: it waits for a",
        "a: it has been running since 2026-01-20 10:30:00 UTC",
    ]


def test_a_step_that_sleeps_says_until_when() -> None:
    schedule = chain()
    schedule.start("a", NOW)
    schedule.rest("a", later(90))
    until = f"{later(90):%Y-%m-%d %H:%M:%S} UTC"
    assert said(schedule.run) == [f"a: it has been running since 2026-01-20 10:30:00 UTC; it continues at {until}"]
    assert f"      Notes: continues at {until}" in text(schedule.run).splitlines()


def test_what_is_done_is_not_waited_for() -> None:
    schedule = begun(step("a"), step("b"), step("c", "a", "b"))
    schedule.start("a", NOW)
    schedule.settle("a", completed(), NOW)
    assert said(schedule.run, "c")[0] == "c: it waits for b"


def test_a_step_that_asks_says_why_and_what_to_type() -> None:
    schedule = begun(step("a", requires_approval=True))
    schedule.ask("a", NOW)
    assert said(schedule.run) == [
        "a: it awaits approval: plan approve p a",
        "  it asks because the plan says `requiresApproval: true`",
    ]


@pytest.mark.parametrize(
    ("awaiting", "tells"),
    [
        ("answer", "it awaits an answer: plan answer p a VALUE"),
        ("event", "it awaits the event 'paid': plan event p paid"),
        ("recovery", "it failed (TOOL_FAILED), and the LLM is asked how to recover it: it broke"),
    ],
)
def test_a_step_says_what_it_awaits(awaiting: Literal["answer", "event", "recovery"], tells: str) -> None:
    schedule = begun(step("a", args={"event": "paid"}))
    schedule.ask("a", NOW, awaiting=awaiting)
    schedule.run.steps["a"].failure = failed().result
    assert said(schedule.run) == [f"a: {tells}"]


def test_a_skipped_step_has_its_reason_and_a_denied_one_who_denied_it() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.settle("a", skipped("condition not met: n > 3"), NOW)
    schedule.settle("b", skipped("User denied approval", opens=False), NOW)
    assert said(schedule.run) == ["a: it was skipped: condition not met: n > 3"]
    assert said(schedule.run, "b") == ["b: it was denied: User denied approval"]
    schedule.run.decisions["b"] = Decision(approved=False, by="ann", comment="not today", time=NOW)
    assert said(schedule.run, "b") == ["b: it was denied by ann, 2026-01-20 10:30:00 UTC: not today"]


def test_a_step_that_was_denied_before_its_turn_says_so_before_what_it_waits_for() -> None:
    schedule = chain()
    schedule.start("a", NOW)
    schedule.run.decisions["b"] = Decision(approved=False, by="ann", comment="not today", time=NOW)
    denied, then, *_ = said(schedule.run, "b")
    assert denied == "b: it was denied by ann, 2026-01-20 10:30:00 UTC: not today"
    assert then == "  it is skipped when its turn comes after a, and what depends on it never starts"
    assert denied in said(schedule.run, "c")


def test_a_step_that_nothing_blocks_says_what_holds_the_whole_plan() -> None:
    held, paused, free = begun(step("a")), begun(step("a")), begun(step("a"))
    held.run.notices["locks"] = Notice(text="waits for its workspace", since=NOW, holds=True)
    paused.pause(NOW, "paused")
    assert said(held.run) == ["a: it has not started: the plan waits for its workspace"]
    assert said(paused.run) == ["a: it has not started: the plan is paused; plan unpause p"]
    assert said(free.run)[0].startswith("a: it may start, and waits for its turn")


def test_a_step_of_a_plan_that_never_began_says_why_that_is() -> None:
    refused, draft = run_of(step("a")), run_of(step("a"))
    refused.problems = [Problem(code="UNKNOWN_TOOL", message="there is no tool 'x'")]
    assert said(refused) == ["a: it has not started: the plan was refused: UNKNOWN_TOOL: there is no tool 'x'"]
    refused.steps["a"].status, refused.steps["a"].permanently_blocked = Status.BLOCKED, True
    assert said(refused) == ["a: it has not started: the plan was refused: UNKNOWN_TOOL: there is no tool 'x'"]
    assert said(draft) == ["a: it has not started: the plan has not started"]
    review = Schedule(run_of(step("a")))
    review.review()
    assert review.run.status is PlanStatus.REVIEW
    assert said(review.run) == ["a: it has not started: the plan is in review; plan begin p"]
    review.run.problems = [Problem(code="UNKNOWN_TOOL", step_id="a", field="tool", message="there is no tool 'x'")]
    assert said(review.run) == ["a: it has not started: first fix: UNKNOWN_TOOL: step 'a' tool: there is no tool 'x'"]


def test_a_step_of_a_stopped_plan_says_what_stopped_it() -> None:
    schedule = begun(step("a", critical=True), step("b"))
    schedule.start("a", NOW)
    schedule.settle("a", failed(), NOW)
    assert said(schedule.run, "b")[0] in {
        "b: it never starts: critical step 'a' failed",
        "b: it has not started: the plan was stopped: critical step 'a' failed",
    }


def test_a_block_whose_step_failed_leaves_the_error_to_that_step() -> None:
    player = Player(plan({"id": "work", "steps": [note("a")]}), broken("work.a")).play()
    assert said(player.run, "work") == [
        "work: it failed (BROKEN): step 'work.a' failed",
        "work.a: it failed (BROKEN): failed",
    ]


def test_what_was_undone_says_so_and_leads_to_its_undo() -> None:
    undo = {"undo": {"tool": "delete_file", "args": {"path": "a"}}}
    closing = {"rollback": True, "finally_": [note("last")]}
    player = Player(plan(note("a") | undo, note("b", None, "a"), **closing), broken("b")).play()
    first, second, third, *_ = said(player.run)
    assert first.startswith("a: it completed; its tool was called, as neither plan nor step asks")
    assert (second, third) == ("  since then: being undone", "a.undo: it awaits approval: plan approve p a.undo")
    assert said(player.run, "finally.last") == [
        "finally.last: it has not started: all other steps end before those of `finally` start"
    ]
    with pytest.raises(Refused, match=r"did you mean 'finally\.last'"):
        why(player.run, "finally.lst")
    player.decide("a.undo", True)
    assert "  since then: undone" in said(player.play().run)

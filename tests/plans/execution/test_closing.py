"""Which steps close a plan, in which order, and what the plan's status then is: pure decisions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.closing import advance, cancel
from plansurvive.plans.execution.messages import Decide, check_control
from plansurvive.plans.execution.next_action import Ask, Call, Fail, Open, next_action
from plansurvive.plans.execution.resume import rerun_from, rerun_only, resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.undo_run import problem_of, undoing, with_undone
from plansurvive.plans.flow.progress import Settle
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, run_of, text_of
from plansurvive.plans.run.step_call import digest_of
from plansurvive.plans.run.undone import undone
from plansurvive.plans.views import queries
from plansurvive.plans.views.details import of_plan
from plansurvive.plans.views.markdown import Node, mermaid
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.summary import summary_of
from tests.plans.building import NOW, begun, completed, failed, skipped, statuses, step

NOTES: dict[str, Any] = {"tool": "note", "args": {"text": "{{value}}"}}


def undoable(name: str, *needs: str, **fields: Any) -> Step:
    """A step with an undo."""
    return step(name, *needs, undo=NOTES, **fields)


def settled(schedule: Schedule, **outcomes: Any) -> Schedule:
    """The schedule after these steps have started and ended, in this order."""
    for name, outcome in outcomes.items():
        schedule.start(name.replace("__", "."), NOW)
        schedule.settle(name.replace("__", "."), outcome, NOW)
        proceed(schedule)
    return schedule


def proceed(schedule: Schedule) -> None:
    """Open and end blocks, as the workflow does."""
    for name in [name for name in schedule.ready if schedule.is_container(name)]:
        action = next_action(schedule, name)
        assert isinstance(action, Open)
        schedule.start(name, NOW)
        schedule.open(name, action.opened, NOW)
    while (ended := schedule.next_ended()) is not None:
        move = schedule.next_move(ended, NOW)
        assert isinstance(move, Settle)
        schedule.settle(ended, move.outcome, NOW)


def go_on(schedule: Schedule) -> bool:
    """Begin what closes the plan next."""
    begun = advance(schedule, NOW)
    proceed(schedule)
    return begun


def broken(*steps: Step, **fields: Any) -> Schedule:
    """A plan whose steps a, b completed, b first, and whose step x failed."""
    schedule = begun(*(steps or (undoable("a"), undoable("b"))), step("x"), rollback=True, **fields)
    return settled(schedule, b=completed("vb"), a=completed("va"), x=failed())


def closed(schedule: Schedule, **outcomes: Any) -> list[str]:
    """Close the plan; what ran for that, in order. Each completes, unless something else is said of it."""
    ran = []
    while go_on(schedule):
        while schedule.ready:
            ran.append(next(iter(schedule.ready)))
            settled(schedule, **{ran[-1]: outcomes.get(ran[-1], completed())})
    schedule.end(NOW)
    return ran


def test_steps_are_undone_one_at_a_time_the_last_completed_first() -> None:
    schedule = broken()
    assert go_on(schedule)
    assert list(schedule.ready) == ["a.undo"]
    assert closed(settled(schedule, a__undo=completed())) == ["b.undo"]
    assert schedule.run.status == "partial"


def test_a_failed_undo_leaves_the_others_their_turn() -> None:
    schedule = broken()
    assert closed(schedule, **{"a.undo": failed()}) == ["a.undo", "b.undo"]
    outcomes = {name: undone(schedule.run, name) for name in "ab"}
    assert {name: found.status for name, found in outcomes.items() if found} == {"a": "failed", "b": "completed"}


@pytest.mark.parametrize(("fails", "rolls_back"), [(completed(), False), (failed(), True), (skipped(), False)])
def test_a_plan_rolls_back_when_it_would_not_complete(fails: Any, rolls_back: bool) -> None:
    schedule = settled(begun(undoable("a"), step("x"), rollback=True), a=completed(), x=fails)
    assert (closed(schedule) == ["a.undo"]) is rolls_back


def test_without_rollback_or_undo_nothing_is_undone() -> None:
    assert closed(settled(begun(undoable("a"), step("x")), a=completed(), x=failed())) == []
    assert closed(settled(begun(step("a"), step("x"), rollback=True), a=completed(), x=failed())) == []


def test_steps_that_did_not_complete_are_not_undone() -> None:
    schedule = begun(undoable("a"), undoable("b"), undoable("c", "a"), rollback=True)
    assert closed(settled(schedule, a=failed(), b=skipped())) == []


def test_a_stopped_plan_still_closes_and_its_stop_does_not_hold_back_its_finally() -> None:
    last = [step("one"), step("two", "one"), step("three")]
    schedule = settled(begun(undoable("a"), step("x", critical=True), step("y"), rollback=True, finally_=last),
                       a=completed(), x=failed())  # fmt: skip
    assert schedule.run.stopped
    ran = closed(schedule, **{"finally.three": failed()})
    assert ran == ["a.undo", "finally.one", "finally.three", "finally.two"]
    assert schedule.run.status == "failed"


@pytest.mark.parametrize(
    ("critical", "outcome", "ends"),
    [(False, completed(), "completed"), (False, failed(), "partial"), (True, failed(), "failed")],
)
def test_the_status_of_a_completed_plan_follows_from_its_finally(critical: bool, outcome: Any, ends: str) -> None:
    schedule = settled(begun(step("a"), finally_=[step("last", critical=critical)]), a=completed())
    closed(schedule, **{"finally.last": outcome})
    assert schedule.run.status == ends


def test_an_undo_uses_the_value_of_its_step_and_finally_the_status() -> None:
    last = step("last", args={"text": "{{status}} {{a}}"})
    schedule = broken(finally_=[last])
    go_on(schedule)
    action = next_action(schedule, "a.undo")
    assert isinstance(action, Call)
    assert action.filled.args == {"text": "va"}
    settled(schedule, a__undo=completed())
    go_on(schedule)
    settled(schedule, b__undo=completed())
    go_on(schedule)
    action = next_action(schedule, "finally.last")
    assert isinstance(action, Call)
    assert action.filled.args == {"text": "partial va"}


def test_a_finally_step_that_uses_a_value_that_was_never_made_fails_clearly() -> None:
    schedule = settled(begun(step("a"), finally_=[step("last", args={"text": "{{a}}"})]), a=failed())
    go_on(schedule)
    action = next_action(schedule, "finally.last")
    assert isinstance(action, Fail)
    assert action.code == "BAD_REFERENCE"


def test_an_undo_of_several_steps_runs_them_by_what_they_use() -> None:
    two = [
        {"id": "late", "tool": "note", "args": {"text": "{{early}} {{value}} {{b}}"}},
        {"id": "early", "tool": "note", "args": {"text": "x"}},
    ]
    schedule = broken(step("a", undo={"steps": two}), undoable("b"))
    go_on(schedule)
    assert list(schedule.ready) == ["a.undo.early"]
    settled(schedule, a__undo__early=completed("e"))
    action = next_action(schedule, "a.undo.late")
    assert isinstance(action, Call)
    assert action.filled.args == {"text": "e va vb"}


def test_an_undo_asks_as_its_tool_does_and_is_decided_about_by_its_own_id() -> None:
    schedule = broken(step("a", undo={"tool": "delete_file", "args": {"path": "{{value}}"}}), step("b"))
    go_on(schedule)
    action = next_action(schedule, "a.undo")
    assert isinstance(action, Ask)
    assert action.call.args == {"path": "va"}
    schedule.ask("a.undo", NOW)
    approvals.ask(schedule.run, "a.undo", action.call.args, digest_of(action.call))
    assert queries.call(schedule.run, [{"stepId": "a.undo"}])["args"] == {"path": "va"}
    approvals.decide(schedule.run, Decide(step_id="a.undo", approved=True), NOW, "signal")
    schedule.answered("a.undo")
    with pytest.raises(Refused, match=r"no step 'z\.undo'"):
        approvals.decide(schedule.run, Decide(step_id="z.undo", approved=True), NOW, "signal")


def test_a_call_that_closes_a_plan_says_so_and_why() -> None:
    undo = {"tool": "delete_file", "args": {"path": "{{value}}"}}
    schedule = broken(step("a", undo=undo), step("b"), finally_=[step("last", tool="delete_file", args={"path": "p"})])
    go_on(schedule)

    def because(name: str) -> str:
        return str(queries.call(schedule.run, [{"stepId": name}])["reasons"][0])

    why = "the plan is rolling back, as step 'x' failed (TOOL_FAILED): it broke"
    assert because("a.undo") == f"{why}: this undoes step 'a'"
    schedule.run.closing = schedule.run.closing.model_copy(update={"of": "p"}) if schedule.run.closing else None
    assert because("a.undo") == "plan 'p' is undone by `plan undo`: this undoes step 'a'"
    schedule.run.closing = schedule.run.closing.model_copy(update={"of": ""}) if schedule.run.closing else None
    settled(schedule, a__undo=completed())
    go_on(schedule)
    assert because("finally.last") == "the plan is finishing: this is part of its `finally`, and it ends as partial"


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (skipped("User denied approval", opens=False), ", as step 'x' was denied"),
        (failed("no room"), ", as step 'x' failed (TOOL_FAILED): no room"),
    ],
)
def test_why_a_plan_rolls_back_is_said_of_each_cause(outcome: Any, why: str) -> None:
    schedule = begun(undoable("a"), step("x"), rollback=True)
    settled(schedule, a=completed("va"), x=outcome)
    go_on(schedule)
    (first, *_) = queries.call(schedule.run, [{"stepId": "a.undo"}])["reasons"]
    assert first == f"the plan is rolling back{why}: this undoes step 'a'"


def test_an_edit_of_a_step_gives_its_undo_no_waiver() -> None:
    own = {"steps": [{"id": "rm", "tool": "delete_file", "args": {"path": "p"}, "requiresApproval": False}]}
    for edited, kind in ((False, Call), (True, Ask)):
        schedule = broken(step("a", undo=own), step("b"))
        schedule.run.edited = {"a": "call"} if edited else {}
        go_on(schedule)
        assert isinstance(next_action(schedule, "a.undo.rm"), kind)


def test_a_plan_that_is_closed_carries_on_after_continue_as_new() -> None:
    schedule = broken(finally_=[step("one"), step("two", "one")])
    names = []
    while go_on(schedule):
        while schedule.ready:
            schedule = Schedule(run_of(text_of(schedule.run)))
            names.append(next(iter(schedule.ready)))
            schedule = settled(Schedule(run_of(text_of(schedule.run))), **{names[-1]: completed()})
    assert names == ["a.undo", "b.undo", "finally.one", "finally.two"]


def test_an_interrupted_plan_and_one_that_never_began_are_not_closed() -> None:
    schedule = settled(begun(undoable("a"), step("x"), rollback=True, finally_=[step("last")]), a=completed())
    schedule.run.interrupted = True
    schedule.stop("interrupted", NOW)
    assert not advance(schedule, NOW)
    assert advance(schedule, NOW, cancelled=True)
    never = Schedule(run_of(text_of(Run.of(schedule.run.plan, schedule.run.options, schedule.run.facts, {}))))
    assert not advance(never, NOW, cancelled=True)


def test_a_plan_that_is_being_closed_is_cancelled_once_and_then_abandoned() -> None:
    schedule = broken()
    go_on(schedule)
    assert cancel(schedule.run, NOW)
    assert not cancel(schedule.run, NOW)
    for action in ("interrupt", "begin"):
        with pytest.raises(Refused):
            check_control(schedule.run, action)
    check_control(schedule.run, "abandon")


def test_the_text_of_a_plan_says_that_it_is_rolling_back() -> None:
    schedule = broken()
    go_on(schedule)
    assert any(row.startswith("Status: running, rolling back: ") for row in of_plan(schedule.run))


def test_undone_steps_and_what_depends_on_them_run_again_when_the_plan_is_resumed() -> None:
    schedule = begun(undoable("a"), step("after", "a"), step("free"), undoable("kept"), step("x"), rollback=True)
    settled(schedule, a=completed(), after=completed(), free=completed(), kept=completed(), x=failed())
    closed(schedule, **{"kept.undo": failed()})
    for new in (resumed(schedule.run, "p-r2", NOW), rerun_from(schedule.run, "x", "p-r2", NOW)):
        assert statuses(new) == {
            "a": "pending",
            "after": "pending",
            "x": "pending",
            "free": "completed",
            "kept": "completed",
        }
        assert new.closing is None
    with pytest.raises(Refused, match="needs 'a'"):
        rerun_only(schedule.run, "after", "p-r2", NOW)


def test_views_and_summary_say_what_became_of_each_undo() -> None:
    schedule = broken(finally_=[step("last")])
    closed(schedule, **{"b.undo": failed("stuck")})
    view = PlanView.read(queries.view(schedule.run, []))
    assert [(each.id, each.undo.status) for each in view.steps if each.undo] == [("a", "completed"), ("b", "failed")]
    assert [each.id for each in view.steps if each.closes] == ["a.undo", "b.undo", "finally.last"]
    assert view.counts == {"total": 3, "completed": 2, "failed": 1}
    assert view.closing is not None
    assert view.closing.undo == {"completed": 1, "failed": 1}
    drawn = mermaid([Node.of(each) for each in view.steps])
    assert re.findall(r"↶ [a-z ]+", drawn) == ["↶ undone", "↶ undo failed"]
    assert "    s0 --> s3\n    s1 --> s4" in drawn, "an undo follows what it undoes"
    text = queries.text(schedule.run, [])
    assert "undo failed: stuck" in text
    assert "Progress: 2/3" in text
    summary = summary_of(schedule.run)
    assert [(each.step_id, each.status, each.error) for each in summary.undone] == [
        ("a", "completed", ""),
        ("b", "failed", "stuck"),
    ]


def test_an_ended_plan_is_undone_by_a_run_of_its_own_and_only_once() -> None:
    schedule = settled(begun(undoable("a"), undoable("b"), step("x")), a=completed("va"), b=completed("vb"), x=failed())
    schedule.end(NOW)
    first = Schedule(undoing(schedule.run, "p-undo", NOW))
    assert problem_of(first.run) is None
    first.begin(NOW)
    assert closed(first, **{"b.undo": failed()}) == ["b.undo", "a.undo"]
    assert first.run.status == "partial"
    second = Schedule(undoing(first.run, "p-undo-r2", NOW))
    assert problem_of(second.run) is None
    second.begin(NOW)
    assert closed(second) == ["b.undo"]
    assert second.run.status == "completed"
    with pytest.raises(Refused, match="still to be done"):
        undoing(second.run, "p-undo-r3", NOW)
    with pytest.raises(Refused, match="only undoes plan 'p'"):
        resumed(second.run, "p-undo-r3", NOW)
    assert statuses(resumed(with_undone(schedule.run, second.run), "p-r2", NOW)) == dict.fromkeys("abx", "pending")


def test_a_run_handed_in_that_closes_what_it_should_not_is_refused() -> None:
    schedule = settled(begun(undoable("a"), step("x")), a=completed(), x=failed())
    schedule.end(NOW)
    sound = undoing(schedule.run, "p-undo", NOW)
    closing = sound.closing
    assert closing is not None
    for change in ({"order": ["x"]}, {"order": ["a", "a"]}, {"order": ["z"]}, {"of": ""}, {"begun": 1},
                   {"phase": "finally"}, {"ends": "failed"}, {"abandoned": True}):  # fmt: skip
        assert problem_of(sound.model_copy(update={"closing": closing.model_copy(update=change)}))
    state = schedule.run.steps["a"].model_copy(update={"closes": "undo"})
    assert problem_of(sound.model_copy(update={"steps": {**sound.steps, "a.undo": state}}))
    assert problem_of(sound.model_copy(update={"closing": None, "steps": {**sound.steps, "a.undo": state}}))

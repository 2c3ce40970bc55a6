"""Blocks, repetitions, switches, catches and `finally` of blocks (DESIGN 2.8)."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.run import Result, Status
from plansurvive.plans.step_state import Outcome
from tests.plans.building import NOW
from tests.plans.flow.player import Player, Tool, broken, code_of, failing, note, plan


def test_a_block_is_referenced_as_a_whole_and_may_have_an_output() -> None:
    block = {"id": "work", "steps": [note("a", 1), note("b", "{{a}}{{start}}")]}
    rows = (note("start", "s"), block | {"output": "b"}, note("end", "{{work}}!"))
    assert Player(plan(*rows)).play().value("end") == "1s!"
    played = Player(plan(note("start", "s"), block, note("end", "$work.b"))).play()
    assert (played.value("work"), played.value("end")) == ({"a": 1, "b": "1s"}, "1s")


def test_a_block_waits_for_what_its_steps_use_and_what_follows_waits_for_the_block() -> None:
    block = {"id": "work", "steps": [note("a", "$start")]}
    assert Player(plan(note("end", None, "work"), block, note("start", 1))).play().called == ["start", "work.a", "end"]


def test_a_block_fails_with_its_step_and_what_is_independent_in_it_still_runs() -> None:
    block = {"id": "work", "steps": [note("a"), note("b", None, "a"), note("c")]}
    played = Player(plan(block, note("end", None, "work")), broken("work.a")).play()
    assert played.statuses("work.a", "work.b", "work.c", "work", "end") == [
        "failed", "blocked", "completed", "failed", "blocked",
    ]  # fmt: skip
    assert (code_of(played, "work"), played.run.status) == ("BROKEN", "partial")


def test_a_block_asks_once_as_a_whole() -> None:
    played = Player(plan({"id": "work", "requiresApproval": True, "steps": [note("a"), note("b")]})).play()
    assert list(played.schedule.awaiting) == ["work"]
    assert [row["id"] for row in played.run.steps["work"].asked["steps"]] == ["a", "b"]  # type: ignore[index]
    played.decide("work")
    assert played.play().called == ["work.a", "work.b"]


def test_a_denied_step_in_a_block_denies_the_block() -> None:
    played = Player(
        plan({"id": "work", "steps": [note("a") | {"requiresApproval": True}, note("b", None, "a")]})
    ).play()
    played.decide("work.a", False)
    played.play()
    assert (played.statuses("work", "work.b"), code_of(played, "work")) == (["skipped", "blocked"], "DENIED")
    assert played.run.status == "partial"


def counting() -> Tool:
    count = iter(range(1, 1_000))

    def tool(*_: Any) -> Any:
        return {"n": next(count)}

    return tool


def test_a_step_is_repeated_until_its_value_satisfies() -> None:
    repeat = {"until": "n >= `3`", "limit": 5, "delay": 7}
    played = Player(plan(note("poll") | {"repeat": repeat}, note("end", "$poll.n")), counting()).play()
    assert (played.called[:3], played.value("poll")) == (["poll#1", "poll#2", "poll#3"], {"n": 3})
    assert (played.now - NOW).total_seconds() == 14
    kept = Player(plan(note("poll") | {"repeat": repeat | {"keep": "all"}}), counting()).play()
    assert kept.value("poll") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_repetition_ends_at_its_limit_and_a_failed_round_fails_it() -> None:
    repeat = {"until": "n > `9`", "limit": 2}
    played = Player(plan(note("poll") | {"repeat": repeat}), counting()).play()
    assert (code_of(played, "poll"), played.called) == ("REPEAT_LIMIT", ["poll#1", "poll#2"])
    assert code_of(Player(plan(note("poll") | {"repeat": repeat}), broken("poll#1")).play(), "poll") == "BROKEN"


def test_a_block_is_repeated_and_its_steps_know_the_round() -> None:
    block = {"id": "poll", "repeat": {"until": "a == `2`"}, "steps": [note("a", "$round")]}
    played = Player(plan(block)).play()
    assert (played.called, played.value("poll")) == (["poll#1.a", "poll#2.a"], {"a": 2})


@pytest.mark.parametrize(("given", "ran"), [(1, "one"), (2, "two"), (3, "other")])
def test_a_switch_runs_the_first_alternative_that_holds(given: int, ran: str) -> None:
    cases: list[dict[str, Any]] = [
        {"when": f"start == `{n}`", "steps": [note(name)]} for n, name in ((1, "one"), (2, "two"))
    ]
    cases.append({"steps": [note("other", "$start")]})
    played = Player(plan(note("start", given), {"id": "choose", "switch": cases})).play()
    assert played.called == ["start", f"choose.{ran}"]
    assert list(played.value("choose")) == [ran]


def test_a_switch_in_which_nothing_holds_is_skipped() -> None:
    played = Player(plan({"id": "choose", "switch": [{"when": "`false`", "steps": [note("a")]}]})).play()
    assert (played.statuses("choose"), played.run.status) == (["skipped"], "completed")


CATCH = [
    {"codes": ["A", "B"], "steps": [note("ab", "{{error.code}} {{error.message}}")]},
    {"steps": [note("any", "x")]},
]


@pytest.mark.parametrize(("code", "ran"), [("B", "ab"), ("C", "any")])
@pytest.mark.parametrize("form", ["call", "block", "repeat"])
def test_a_failure_is_caught_by_its_code_and_the_step_counts_as_completed(code: str, ran: str, form: str) -> None:
    step = note("work") if form != "block" else {"id": "work", "steps": [note("a")]}
    step |= {"repeat": {"until": "`true`"}} if form == "repeat" else {}
    name = {"call": "work", "block": "work.a", "repeat": "work#1"}[form]
    played = Player(plan(step | {"catch": CATCH}, note("end", "$work")), failing(code, name)).play()
    assert played.called == [name, f"work.catch.{ran}", "end"]
    assert (played.statuses("work"), played.run.status) == (["completed"], "completed")
    assert list(played.value("end")) == [ran]


def test_a_failure_no_handler_names_and_one_of_the_handler_itself_remain_failures() -> None:
    played = Player(plan(note("work") | {"catch": CATCH[:1]}), failing("C", "work")).play()
    assert (played.called, code_of(played, "work")) == (["work"], "C")
    played = Player(plan(note("work") | {"catch": CATCH[:1]}), failing("A", "work", "work.catch.ab")).play()
    assert code_of(played, "work") == "A"
    assert "its catch failed" in str(played.run.steps["work"].result)


def test_a_critical_step_inside_a_caught_block_does_not_stop_the_plan() -> None:
    block = {"id": "work", "steps": [note("a") | {"critical": True}], "catch": CATCH}
    assert Player(plan(block), failing("A", "work.a")).play().run.status == "completed"


@pytest.mark.parametrize("fails", [False, True])
def test_finally_runs_whatever_happened_and_knows_how_it_ended(fails: bool) -> None:
    block = {"id": "work", "steps": [note("a", 1)], "finally": [note("clean", "{{status}}")]}
    played = Player(plan(block, note("end", None, "work")), broken("work.a") if fails else broken()).play()
    assert played.called[:2] == ["work.a", "work.finally.clean"]
    assert played.value("work.finally.clean") == ("failed" if fails else "completed")
    assert played.run.status == ("partial" if fails else "completed")
    assert played.value("work") == (None if fails else {"a": 1})


def test_finally_of_a_block_runs_when_the_plan_stops_beside_it() -> None:
    block = {"id": "work", "steps": [note("a"), note("b", None, "a")], "finally": [note("clean")]}
    played = Player(plan(block, note("bad") | {"critical": True}, maxParallel=2), broken("bad")).play()
    assert played.run.status == "failed"
    assert played.run.steps["work.finally.clean"].status is Status.COMPLETED
    assert played.statuses("work.b") == ["blocked"]


@pytest.mark.parametrize("reload", [False, True])
def test_loops_and_repetitions_in_a_finally_run_whole_although_the_plan_has_stopped(reload: bool) -> None:
    inside: list[dict[str, Any]] = [
        note("each", "{{item}}") | {"forEach": {"items": ["a", "b", "c"], "key": "@", "maxParallel": 1}},
        note("poll", "{{round}}") | {"repeat": {"until": "@ == '3'"}},
        {"id": "tried", "steps": [note("fails")], "catch": [{"steps": [note("caught")]}]},
    ]
    block = {"id": "work", "steps": [note("a"), note("b", None, "a")], "finally": inside}
    tool = broken("bad", "work.finally.tried.fails")
    critical = note("bad") | {"critical": True}
    played = Player(plan(block, critical, maxParallel=2), tool, reload=reload).play()
    assert played.run.status == "failed"
    assert played.value("work.finally") == {"each": ["a", "b", "c"], "poll": "3", "tried": {"caught": None}}


@pytest.mark.parametrize("reload", [False, True])
def test_no_item_and_no_round_begins_in_a_plan_that_has_stopped(reload: bool) -> None:
    each = note("each", "{{item}}") | {"forEach": {"items": ["a", "b", "c"], "maxParallel": 1}}
    poll = note("poll") | {"repeat": {"until": "`false`"}}
    rows = (note("bad") | {"critical": True}, each, poll)
    played = Player(plan(*rows, maxParallel=3), broken("bad"), reload=reload).play()
    assert (played.run.status, sorted(played.called)) == ("failed", ["bad", "each[0]", "poll#1"])
    assert [code_of(played, name) for name in ("each", "poll")] == ["NOT_FINISHED"] * 2


def test_a_list_that_is_read_while_the_plan_stops_begins_no_item() -> None:
    each = note("each", "{{item}}") | {"forEach": {"items": "list"}}
    played = Player(plan(note("list", ["a"]), each))
    played.schedule.start("list", NOW)
    done = Outcome(Status.COMPLETED, Result(ok=True, value=["a"], timestamp=NOW))
    played.schedule.settle("list", done, NOW)
    played.schedule.start("each", NOW)  # its list is read by an activity now
    played.schedule.stop("interrupted", NOW)
    played.schedule.open("each", Opened(items=["a", "b"]), NOW)
    played.play()
    assert (played.run.status, played.called, code_of(played, "each")) == ("partial", [], "NOT_FINISHED")


def test_an_interrupt_ends_the_finally_of_a_block_that_awaits_a_person() -> None:
    block = {"id": "work", "steps": [note("a")], "finally": [note("clean") | {"requiresApproval": True}]}
    played = Player(plan(block, note("bad") | {"critical": True}), broken("bad")).play()
    assert list(played.schedule.awaiting) == ["work.finally.clean"]
    played.run.interrupted = True
    played.schedule.stop("interrupted", NOW)
    played.play()
    assert played.run.ended is not None
    assert played.statuses("work.finally.clean") == ["blocked"]


def test_a_failed_finally_fails_a_block_that_had_completed() -> None:
    block = {"id": "work", "steps": [note("a")], "finally": [note("clean")]}
    played = Player(plan(block), broken("work.finally.clean")).play()
    assert (played.statuses("work"), code_of(played, "work")) == (["failed"], "BROKEN")


def test_everything_nested_survives_being_reloaded_at_every_move_and_resumed() -> None:
    inner = note("deep", "{{item}}{{round}}") | {"forEach": {"items": ["p", "q"], "key": "@"}}
    block = {
        "id": "work", "forEach": {"items": ["a", "b"], "as": "outer", "key": "@"}, "repeat": {"until": "`true`"},
        "steps": [inner, note("sum", "$deep")], "catch": CATCH[1:], "finally": [note("clean", "{{outer}}{{status}}")],
    }  # fmt: skip
    once, often = (Player(plan(block), broken("work[b]#1.deep[q]"), reload=reload).play() for reload in (False, True))
    assert sorted(once.called) == sorted(often.called)
    assert once.value("work") == often.value("work")
    assert once.run.steps.keys() == often.run.steps.keys()
    assert once.run.status == "completed"
    failed = Player(plan(block | {"catch": None}), broken("work[b]#1.deep[q]")).play()
    again = Player(resumed(failed.run, "p-r2", NOW), reload=True).play()
    assert [name for name in again.called if "clean" not in name] == ["work[b]#1.deep[q]", "work[b]#1.sum"]
    assert again.run.status == "completed"

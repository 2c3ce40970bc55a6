"""What is kept of events, and which step an event is for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plansurvive.client.feature import views_of_features
from plansurvive.features.waiting import events
from plansurvive.features.waiting.messages import PASSED_BYTES, EventsPassed, PassedEvent, SendEvent
from plansurvive.features.waiting.model import Event, Waiting
from plansurvive.plans.definition.parsing import MAX_DEPTH
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.messages import read
from plansurvive.plans.execution.resume import rerun_from
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.run import Result, Run, Status
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.views.summary import summary_of
from tests.features.waiting.asking import asking, wait
from tests.plans.building import NOW

LATER = NOW + timedelta(hours=1)


def sent(run: Run, data: Any = None, name: str = "paid") -> Event:
    return events.receive(run, SendEvent(name=name, data=data), NOW)


def wants(args: dict[str, Any], data: Any, name: str = "paid") -> bool:
    return events.is_for({"event": "paid", **args}, sent(asking(wait()).run, data, name), Budget(events.MATCH_UNITS))


@pytest.mark.parametrize(
    ("match", "data", "is_for"),
    [
        (None, None, True), ("id == `7`", {"id": 7}, True), ("id == `7`", {"id": 8}, False), ("@", [], False),
        ("@ == 'x'", "x", True), ("length(@) > `2`", 5, False), ("id == `7`", None, False),
        ("total", {"total": 0}, True),
    ],
)  # fmt: skip
def test_an_event_is_for_a_step_if_its_match_holds_and_never_if_it_does_not_apply(
    match: str | None, data: Any, is_for: bool
) -> None:
    assert wants({"match": match}, data) is is_for
    assert not wants({"match": match}, data, "other")


def test_a_match_that_doubles_its_data_without_end_holds_for_nothing() -> None:
    assert not wants({"match": "|".join(["[@,@]"] * 100)}, {"id": 1})


def test_the_newest_of_ten_thousand_events_are_kept_and_the_log_stays_readable() -> None:
    run = asking(wait()).run
    for number in range(10_000):
        sent(run, number)
    assert [event.data for event in run.part(Waiting).events] == list(range(9_800, 10_000))
    assert (run.part(Waiting).number, run.part(Waiting).dropped) == (10_000, 9_800)
    assert sum("no longer kept" in entry.text for entry in run.log) == 99
    assert events.state_problem(run) == ""


def test_large_events_push_out_older_ones_by_their_size() -> None:
    run = asking(wait()).run
    for number in range(40):
        sent(run, f"{number} " + "x" * 16_000)
    assert sum(event.size for event in run.part(Waiting).events) <= events.MAX_BYTES
    assert run.part(Waiting).events[-1].number == 40
    assert len(run.part(Waiting).events) == events.MAX_BYTES // 16_010


def test_each_step_receives_an_event_once_whatever_its_round() -> None:
    run = asking(wait()).run
    run.steps |= dict.fromkeys(["poll#1.wait", "poll#2.wait", "all[a#1].wait", "all[a#2].wait"], run.steps["wait"])
    event = sent(run)
    events.note_received(run, "poll#1.wait", event, NOW)
    events.note_received(run, "all[a#1].wait", event, NOW)
    assert events.has_received(run, "poll#2.wait", event)
    assert not events.has_received(run, "all[a#2].wait", event)
    assert not events.has_received(run, "wait", event)


def test_the_summary_names_the_event_that_a_step_waits_for() -> None:
    schedule = asking(wait(event="order.paid"))
    schedule.ask("wait", NOW, None, "event")
    schedule.run.views = views_of_features()
    assert [(each.step_id, each.kind, each.event) for each in summary_of(schedule.run).asks] == [
        ("wait", "event", "order.paid")
    ]


def test_a_rerun_waits_for_another_event_than_it_has_received() -> None:
    schedule = asking(wait())
    event = sent(schedule.run)
    events.note_received(schedule.run, "wait", event, NOW)
    schedule.ask("wait", NOW, None, "event")
    assert (list(schedule.awaiting), list(schedule.expecting), schedule.idle) == ([], ["wait"], False)
    schedule.settle("wait", Outcome(Status.COMPLETED, Result(ok=True, timestamp=NOW)), NOW, waited=True)
    schedule.end(NOW)
    new = rerun_from(schedule.run, "wait", "p-r2", NOW)
    assert events.has_received(new, "wait", new.part(Waiting).events[0])


@pytest.mark.parametrize(
    "changed",
    [{"number": -1}, {"number": 0}, {"dropped": -1}, {"events": "twice"}, {"events": "many"}, {"events": "large"}],
)
def test_a_run_handed_in_with_impossible_events_is_refused(changed: dict[str, Any]) -> None:
    run = asking(wait()).run
    event = sent(run)
    large = event.model_copy(update={"data": "x" * events.MAX_BYTES})
    many = [event.model_copy(update={"number": number}) for number in range(1, 300)]
    kept = {"twice": [event, event], "many": many, "large": [large]}
    for name, value in changed.items():
        setattr(run.part(Waiting), name, kept.get(value, value) if isinstance(value, str) else value)
    assert events.state_problem(run)


def passed(run: Run, number: int, name: str = "paid", **fields: Any) -> Event | None:
    """Have the plan above pass an event on."""
    return events.receive_passed(run, PassedEvent(number=number, name=name, time=NOW, **fields), LATER)


def test_an_event_of_the_plan_above_is_kept_once_with_its_sender_and_its_time() -> None:
    run = asking(wait()).run
    sent(run, "own")
    event = passed(run, 7, text='{"id": 1}', by="ann", via="web")
    assert event is not None
    assert (event.number, event.above, event.data, event.who, event.time) == (2, 7, {"id": 1}, "ann (web)", NOW)
    assert passed(run, 7) is None
    assert passed(run, 6) is None
    assert passed(run, 6, "other") is not None, "another name was asked for later"
    assert [each.number for each in run.part(Waiting).events] == [1, 2, 3]
    assert events.state_problem(run) == ""


def test_of_names_that_the_plan_above_cannot_pass_on_again_nothing_is_kept() -> None:
    run = asking(wait()).run
    for number in range(1, 1_000):
        passed(run, number, f"order.{number}")
    assert len(run.part(Waiting).passed) == events.MAX_EVENTS


def test_what_the_steps_of_a_child_plan_have_received_its_next_round_does_not() -> None:
    above, child = asking(wait("top")).run, asking(wait(), wait("kid")).run
    first, second = sent(above), sent(above)
    for event in (first, second):
        passed(child, event.number)
    sent(child, "its own")
    kept = child.part(Waiting).events
    events.note_received(child, "wait", kept[2], NOW)
    assert events.received_from_above(child) == []
    events.note_received_below(child, "kid", [kept[0].number, 99])
    assert events.received_from_above(child) == [first.number]
    events.note_received_below(above, "top#1", [first.number])
    assert events.has_received(above, "top#2", first)
    assert not events.has_received(above, "top#2", second)


def test_an_event_is_passed_on_as_it_came_however_deep_its_data_are() -> None:
    deep: Any = "ä"
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    run = asking(wait()).run
    event = events.receive(run, read(SendEvent, [{"name": "paid", "data": deep, "by": "ann", "via": "web"}]), NOW)
    message = read(EventsPassed, [{"events": [events.to_pass(event)]}], max_bytes=PASSED_BYTES)
    found = events.receive_passed(asking(wait()).run, message.events[0], LATER)
    assert found is not None
    assert (found.data, found.who, found.time) == (deep, "ann (web)", NOW)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "NaN", "[" * 65 + "]" * 65, '"\\ud800"'])
def test_a_message_that_passes_on_no_event_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read(
            EventsPassed,
            [{"events": [{"number": 1, "name": "paid", "time": str(NOW), "text": text}]}],
            max_bytes=PASSED_BYTES,
        )

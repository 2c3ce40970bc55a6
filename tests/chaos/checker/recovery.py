"""How long it took after each kill that was watched until a step finished. Standard library only.

Two figures: the next step of any plan to finish, and the next one of each plan that had a call in flight. The second is
what the owner of that plan waits for; it includes what the call itself takes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from statistics import quantiles

from tests.chaos.checker.record import Record, Workflow, seconds


def recovery(record: Record) -> Mapping[str, list[float]]:
    """Seconds by figure, one for each kill (`any plan`), or for each kill and plan (`same plan`)."""
    finished = {each.id: sorted(_finished(each)) for each in record.workflows.values()}
    everywhere = sorted(time for times in finished.values() for time in times)
    kills = [fault.time for fault in record.faults if fault.killed and fault.watched]
    in_flight = {each.id: list(_in_flight(each)) for each in record.workflows.values()}
    same = [
        after
        for kill in kills
        for name, spans in in_flight.items()
        if any(begin < kill < end for begin, end in spans)
        for after in _next(finished[name], kill)
    ]
    return {"any plan": [after for kill in kills for after in _next(everywhere, kill)], "same plan": same}


def percentiles(values: Sequence[float]) -> Mapping[str, float]:
    """p50, p95 and the maximum, in seconds; nothing without values."""
    if not values:
        return {}
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2), "max": round(max(values), 2)}


def _finished(workflow: Workflow) -> Iterator[float]:
    return (seconds(event) for event, _ in workflow.of_type("ActivityTaskCompleted"))


def _in_flight(workflow: Workflow) -> Iterator[tuple[float, float]]:
    """From when to when each completed call was in flight, all attempts together."""
    begun = {event["eventId"]: seconds(event) for event, _ in workflow.of_type("ActivityTaskScheduled")}
    for event, each in workflow.of_type("ActivityTaskCompleted"):
        yield begun[each["scheduledEventId"]], seconds(event)


def _next(times: Sequence[float], kill: float) -> Iterator[float]:
    place = bisect_right(times, kill)
    if place < len(times):
        yield times[place] - kill

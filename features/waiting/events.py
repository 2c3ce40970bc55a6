"""Events: what a plan keeps of them, and which step an event is for.

An event is for every step that waits for its name and whose `match` holds, and a step receives it once, whatever its
round. Events that come before a step waits count: the newest are kept, in a number and size that have limits. What a
step has received is kept for the other steps. Nothing here sets a status. A step that runs a
plan counts as a step that waits: what a step of that plan has received, the plan of its next round does not.

An event is for every step that waits, and for each once: programs that send do not know how many wait. Rejected:
handing each event to one step, which makes their order part of the meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from plansurvive.features.waiting.messages import PassedEvent, SendEvent
from plansurvive.features.waiting.model import Event, Waiting
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import is_true, search
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.run.people import is_verified

EVENT_TIMEOUT = "EVENT_TIMEOUT"
MAX_EVENTS = 200
"""Maximum number of events that a run keeps: it is sent whole."""
MAX_BYTES = 262_144
"""Maximum size of the data of the events that a run keeps, in bytes of JSON."""
MATCH_UNITS = 20_000
"""Budget of one match (`plans.expressions.evaluation`): some milliseconds, for data of 16 kB."""
MAX_NUMBER = 10**9
"""Far above any number of events that a plan can be sent."""
_ROUND = re.compile(r"\[[^\]]*\]|#[0-9]+")


def receive(run: Run, message: SendEvent, now: datetime) -> Event:
    """Keep an event, and drop the oldest ones beyond the limits."""
    event = Event(
        number=run.part(Waiting).number + 1, name=message.name, data=message.data, by=message.by, via=message.via,
        verified=is_verified(run, message), time=now, size=_size(message.data),
    )  # fmt: skip
    _keep(run, event, now)
    return event


def receive_passed(run: Run, message: PassedEvent, now: datetime) -> Event | None:
    """Keep an event that the plan above has passed on; None if it has passed that on before.

    That its author is verified only the record of the plan above can say.
    """
    waiting = run.part(Waiting)
    if message.number <= waiting.passed.get(message.name, 0):
        return None
    data = message.data
    event = Event(
        number=waiting.number + 1, name=message.name, data=data, by=message.by, via=message.via,
        time=message.time, size=_size(data), above=message.number,
    )  # fmt: skip
    # The plan above keeps its newest MAX_EVENTS: older ones it does not pass on again.
    oldest = max([message.number, *waiting.passed.values()]) - MAX_EVENTS
    passed = {name: number for name, number in waiting.passed.items() if number > oldest}
    waiting.passed = passed | {message.name: message.number}
    _keep(run, event, now)
    return event


def to_pass(event: Event) -> dict[str, Any]:
    """The event as a `PassedEvent`, as JSON data."""
    text = json.dumps(event.data, ensure_ascii=False)
    fields = {name: getattr(event, name) for name in ("number", "name", "by", "via", "time")}
    return PassedEvent(**fields, text=text).model_dump(mode="json", exclude_defaults=True)


def _size(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=True, default=str))


def _keep(run: Run, event: Event, now: datetime) -> None:
    waiting = run.part(Waiting)
    waiting.number = event.number
    waiting.events.append(event)
    total, drop = sum(each.size for each in waiting.events), max(0, len(waiting.events) - MAX_EVENTS)
    total -= sum(each.size for each in waiting.events[:drop])
    while total > MAX_BYTES:
        total -= waiting.events[drop].size
        drop += 1
    if drop:
        _drop(run, drop, now)


def _drop(run: Run, number: int, now: datetime) -> None:
    """Drop the oldest events. The log says so at the first and at every hundredth: it has limits as well."""
    waiting = run.part(Waiting)
    before, waiting.dropped = waiting.dropped, waiting.dropped + number
    del waiting.events[:number]
    if before // 100 != waiting.dropped // 100 or not before:
        text = f"{waiting.dropped} of {waiting.number} events are no longer kept, the oldest"
        run.note(LogKind.EVENT, f"{text}; at most {MAX_EVENTS}, or {MAX_BYTES} bytes, wait for a step", now)


def is_for(args: Mapping[str, Any], event: Event, budget: Budget) -> bool:
    """Whether a step that waits with these arguments wants this event."""
    if event.name != args.get("event"):
        return False
    match = args.get("match")
    if not match:
        return True
    try:
        return is_true(search(match, event.data, budget))
    except BadExpression:
        return False  # the expression does not apply to this data, which is not what is waited for


def has_received(run: Run, step_id: str, event: Event) -> bool:
    """Whether the step, in whatever round, or in a run that this one resumes, has received the event."""
    return event.number in run.part(Waiting).received.get(receiver(step_id), ())


def note_received(run: Run, step_id: str, event: Event, now: datetime) -> None:
    """Record that a step has received an event."""
    _note_received(run, step_id, [event.number])
    by = f" of {event.who}" if event.by else ""
    run.note(LogKind.EVENT, f"step '{step_id}' received event '{event.name}'{by}", now, step_id, subject=event.name)


def note_received_below(run: Run, step_id: str, numbers: Collection[int]) -> None:
    """Record which events the steps of a child plan have received, which ends."""
    kept = {event.number for event in run.part(Waiting).events}
    if known := sorted(kept.intersection(numbers)):
        _note_received(run, step_id, known)


def _note_received(run: Run, step_id: str, numbers: Sequence[int]) -> None:
    waiting, name = run.part(Waiting), receiver(step_id)
    oldest = waiting.events[0].number if waiting.events else numbers[0]
    before = [number for number in waiting.received.get(name, ()) if number >= oldest]
    waiting.received[name] = [*before, *(number for number in numbers if number not in before)]


def received_from_above(run: Run) -> list[int]:
    """The numbers, in the plan above, of the kept events that steps of a child plan, or below it, have received."""
    waiting = run.part(Waiting)
    received = {number for numbers in waiting.received.values() for number in numbers}
    return [event.above for event in waiting.events if event.above and event.number in received]


def receiver(step_id: str) -> str:
    """The id of a waiting step without its rounds: `poll#3.wait` receives what `poll#2.wait` has not."""
    return _ROUND.sub(lambda match: match[0] if match[0].startswith("[") else "", step_id)


def state_problem(run: Run) -> str:
    """What is wrong with the events of a Run that was handed in; empty if nothing is."""
    waiting = run.part(Waiting)
    numbers = [event.number for event in waiting.events]
    if numbers != sorted(set(numbers)) or len(numbers) > MAX_EVENTS:
        return f"waiting.events: at most {MAX_EVENTS}, and their numbers ascend"
    counts = (waiting.number, waiting.dropped)
    if min(counts) < 0 or max(counts) > MAX_NUMBER or any(number > waiting.number for number in numbers):
        return "waiting.number: the number of the last event, and none has a higher one"
    size = sum(len(json.dumps(event.data, default=str)) for event in waiting.events)
    return f"waiting.events: {size} bytes, {MAX_BYTES} are allowed" if size > MAX_BYTES else ""

"""Events: what a plan keeps of them, and which step an event is for.

An event is for every step that waits for its name and whose `match` holds, and a step receives it once, whatever its
round. Events that come before a step waits count: the newest are kept, in a number and size that have limits. What a
step has received is kept for the other steps. Nothing here sets a status.

An event is for every step that waits, and for each once: programs that send do not know how many wait. Rejected:
handing each event to one step, which makes their order part of the meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plansurvive.features.waiting.messages import SendEvent
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
    waiting = run.part(Waiting)
    waiting.number += 1
    size = len(json.dumps(message.data, ensure_ascii=True, default=str))
    event = Event(
        number=waiting.number, name=message.name, data=message.data, by=message.by, via=message.via,
        verified=is_verified(run, message), time=now, size=size,
    )  # fmt: skip
    waiting.events.append(event)
    total, drop = sum(each.size for each in waiting.events), max(0, len(waiting.events) - MAX_EVENTS)
    total -= sum(each.size for each in waiting.events[:drop])
    while total > MAX_BYTES:
        total -= waiting.events[drop].size
        drop += 1
    if drop:
        _drop(run, drop, now)
    return event


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
    name, oldest = receiver(step_id), run.part(Waiting).events[0].number if run.part(Waiting).events else event.number
    before = [number for number in run.part(Waiting).received.get(name, ()) if number >= oldest]
    run.part(Waiting).received[name] = [*before, event.number]
    by = f" of {event.who}" if event.by else ""
    run.note(LogKind.EVENT, f"step '{step_id}' received event '{event.name}'{by}", now, step_id, subject=event.name)


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

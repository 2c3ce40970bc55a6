"""What has happened to a big plan, as events read off its brief view: one question instead of forty, and one answer.

They are those of which a big plan's lines tell: how its steps ended, its log, and the questions that are open. What
runs or is ready is among them, so that a question it asks later is known to be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from client.runs import BriefView, EventView
from plans.run import DONE, Status
from plans.views.models import BriefStep, LogLine


def past(view: BriefView) -> list[EventView]:
    """The events in the order in which they happened."""
    happened = [*_of_steps(view), *_questions(view), *_of_log(view)]
    return sorted(happened, key=lambda event: event.seq)


def _of_steps(view: BriefView) -> Iterator[EventView]:
    for step in view.steps:
        if step.seq and (step.status in DONE or step.status in (Status.RUNNING, Status.READY)):
            found = EventView(
                seq=step.seq, time=_time(view, step), task_id=view.id, step_id=step.id, status=step.status
            )
            yield found.model_copy(update={"progress": 100, "result": step.result}) if step.result else found


def _time(view: BriefView, step: BriefStep) -> datetime:
    """When it took its status; of one that is ready nothing is told before it asks."""
    found = step.ended_at if step.status in DONE else step.started_at
    return found or view.started_at or datetime.fromtimestamp(0, UTC)


def _questions(view: BriefView) -> Iterator[EventView]:
    steps = {step.id: step for step in view.steps if step.awaiting}
    for item in view.pending:
        step = steps[item.step_id]
        time = item.since or _time(view, step)
        yield EventView(seq=step.seq, time=time, task_id=view.id, step_id=step.id, status=Status.READY)


def _of_log(view: BriefView) -> Iterator[EventView]:
    for entry in view.log:
        told = LogLine.model_validate(entry.model_dump(include=set(LogLine.model_fields), exclude_unset=True))
        head = EventView(
            seq=entry.seq, time=entry.time, task_id=view.id, step_id=entry.step_id or "", status=entry.status
        )
        yield head.model_copy(update={"logs": [told]})

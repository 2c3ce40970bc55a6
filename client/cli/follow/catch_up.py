"""Past events of a big plan, derived from its brief view: one query instead of forty.

They are the events that lines for a big plan show: how steps ended, the log, and open approvals. Running and ready
steps are included, so that a later return to ready is recognised as awaiting approval.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from plansurvive.client.verbs.runs import BriefView, EventView
from plansurvive.plans.run import DONE, Status
from plansurvive.plans.views.models import BriefStep, listed_steps
from plansurvive.plans.views.progress.events import LogLine


def past(view: BriefView) -> list[EventView]:
    """The events in order of their sequence numbers."""
    happened = [*_of_steps(view), *_questions(view), *_of_log(view)]
    return sorted(happened, key=lambda event: event.seq)


def _of_steps(view: BriefView) -> Iterator[EventView]:
    for step in listed_steps(view.steps):
        if step.seq and not step.awaiting and (step.status in DONE or step.status in (Status.RUNNING, Status.READY)):
            found = EventView(
                seq=step.seq, time=_time(view, step), task_id=view.id, step_id=step.id, status=step.status
            )
            yield found.model_copy(update={"progress": 100, "result": step.result}) if step.result else found


def _time(view: BriefView, step: BriefStep) -> datetime:
    """When the step took its status. For a ready step, which has no such time, when the plan started."""
    found = step.ended_at if step.status in DONE else step.started_at
    return found or view.started_at or datetime.fromtimestamp(0, UTC)


def _questions(view: BriefView) -> Iterator[EventView]:
    steps = {step.id: step for step in listed_steps(view.steps) if step.awaiting}
    for item in view.pending:
        step = steps.get(item.step_id)
        if step is None:  # one of many items: the first of them are in the view
            continue
        time = item.since or _time(view, step)
        yield EventView(
            seq=step.seq, time=time, task_id=view.id, step_id=step.id, status=Status.READY,
            awaiting="answer" if item.is_question else "approval", digest=item.digest or None,
        )  # fmt: skip


def _of_log(view: BriefView) -> Iterator[EventView]:
    for entry in view.log:
        log_line = LogLine.model_validate(entry.model_dump(include=set(LogLine.model_fields), exclude_unset=True))
        head = EventView(
            seq=entry.seq, time=entry.time, task_id=view.id, step_id=entry.step_id or "", status=entry.status
        )
        yield head.model_copy(update={"logs": [log_line]})

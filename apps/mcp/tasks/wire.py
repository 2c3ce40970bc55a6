"""A plan as a task on the wire: its status, what to say of it, its times, and what a finished one carries.

Pure. A task is `completed` whenever the plan has an end to tell of, with `isError` unless it completed: `failed` is for
errors of the protocol, such as a workflow that ended without the plan knowing (tasks specification, Error Handling).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from mcp.types import INTERNAL_ERROR, CallToolResult

from plansurvive.plans.run import PlanStatus, Status
from plansurvive.plans.text.lists import number_of, some
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import BriefView

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
TERMINAL: frozenset[TaskStatus] = frozenset(("completed", "failed", "cancelled"))
MAX_MESSAGE = 2_000
MAX_NAMED = 5
QUICK, SLOW = 1_000, 5_000
"""Milliseconds between two polls: of a plan that began just now, and of one that has taken a while."""
YOUNG = timedelta(minutes=1)


class Times(NamedTuple):
    """When the task began and last changed, and for how long the server keeps it, as far as known."""

    created: datetime
    updated: datetime
    kept: timedelta | None = None
    """From its creation on; none: as long as it runs, and then at least."""
    age: timedelta = timedelta()
    """How long ago it began."""


class Task(NamedTuple):
    """The state of a task, as `tasks/get` tells it."""

    id: str
    status: TaskStatus
    message: str
    times: Times
    requests: Mapping[str, Any] = {}
    result: CallToolResult | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it will not change any more."""
        return self.status in TERMINAL

    def seed(self) -> dict[str, Any]:
        """The fields that every message about it has."""
        kept = self.times.kept
        return {
            "taskId": self.id,
            "status": self.status,
            **({"statusMessage": line(self.message)[:MAX_MESSAGE]} if self.message else {}),
            "createdAt": written(self.times.created),
            "lastUpdatedAt": written(max(self.times.updated, self.times.created)),
            "ttlMs": None if kept is None else max(1, int(kept / timedelta(milliseconds=1))),
            "pollIntervalMs": QUICK if self.times.age < YOUNG else SLOW,
        }

    def detailed(self) -> dict[str, Any]:
        """The same with its requests, result or error: a DetailedTask."""
        if self.status == "input_required":
            return {**self.seed(), "inputRequests": dict(self.requests)}
        if self.status == "completed" and self.result is not None:
            data = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**self.seed(), "result": data}
        if self.status == "failed":
            return {**self.seed(), "error": {"code": INTERNAL_ERROR, "message": line(self.message)[:MAX_MESSAGE]}}
        return self.seed()

    def differs(self, other: Task | None) -> bool:
        """Whether a client that knows the other state has not seen this one."""
        return other is None or self._seen() != other._seen()

    def _seen(self) -> dict[str, Any]:
        """What is news if it changes: how often to ask is not."""
        return {name: each for name, each in self.detailed().items() if name != "pollIntervalMs"}


def written(time: datetime) -> str:
    """A time as ISO 8601, in UTC and to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def progress(view: BriefView) -> str:
    """How far a plan is that runs, in a sentence."""
    if view.status is PlanStatus.DRAFT:
        return "the LLM writes the plan"
    total = view.counts.get("total", len(view.steps))
    done = sum(view.counts.get(name.value, 0) for name in (Status.COMPLETED, Status.SKIPPED))
    running = [step.id for step in view.steps if step.status is Status.RUNNING]
    now = f"; running: {some(running, MAX_NAMED)}" if running else ""
    paused = "; paused" if view.status is PlanStatus.PAUSED else ""
    return f"{done} of {number_of(total, 'step')} done{now}{paused}"


def changed(view: BriefView, created: datetime) -> datetime:
    """When something last happened in a plan, as its view tells."""
    times = [time for step in view.steps for time in (step.started_at, step.ended_at) if time]
    times += [entry.time for entry in view.log] + [item.since for item in view.pending if item.since]
    return max([created, *times])

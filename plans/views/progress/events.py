"""Progress events: what happened in a run, numbered, derived from its status changes and its log (seed 004).

An event tells what was so at its time: what a step asked then, not what an approver made of it later. A step that
becomes ready and then asks has one event for both. Values and arguments in events are whole when they are small, and
marked as cut when they are not (`cut`, `length`); the full view has the rest.

Rejected: a second store of progress, and streams (4 to 9 events per step). What was asked stays with arguments of up to
1,000 characters, so a late watcher is not shown the present arguments as if they had been asked.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import Any

from pydantic import Field

from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.execution.tool_history import SMALL, TRUNCATED, attempts_before, shorten, small_args
from plansurvive.plans.log import Entry
from plansurvive.plans.model import Value
from plansurvive.plans.run import DONE, Change, Result, Run, Status, StepState
from plansurvive.plans.views.models import ResultView, View
from plansurvive.plans.views.progress.pending import iso

_LOG_FIELDS = {"kind", "text", "code", "subject"}
"""Fields of a log entry in an event, besides its time."""


class LogLine(Value):
    """A log entry within an event."""

    time: datetime | None = None
    kind: str = ""
    text: str = ""
    code: str | None = None
    subject: str | None = None


class AskedView(Value):
    """What a step asked, at the time of the event."""

    kind: str = Field(
        default="approval", description="Of a call; question; or recovery, budget: `args` are the proposal."
    )
    args: dict[str, Any] = Field(default_factory=dict)
    cut: bool = Field(default=False, description="The arguments are not whole, but the beginnings of their texts.")
    length: int | None = Field(default=None, description="Of cut arguments: characters of their JSON.")


class EventView(View):
    """One progress event. It concerns the plan if `stepId` is empty."""

    seq: int
    time: datetime
    task_id: str
    step_id: str
    status: str = Field(description="Status of the step, or of the plan.")
    progress: int | None = Field(default=None, description="Percent.")
    result: ResultView | None = None
    logs: list[LogLine] | None = Field(default=None, description="One line, for a log entry.")
    awaiting: str | None = Field(
        default=None, description="The step waits with this: approval, answer, event or recovery."
    )
    digest: str | None = Field(default=None, description="Digest of what the step asks with this.")
    asked: AskedView | None = Field(default=None, description="What it asks; of its last ten questions.")
    attempts: list[Attempt] | None = Field(
        default=None, description="The attempts of the call that has ended, or of the one that runs, without a value."
    )
    of: int | None = Field(default=None, description="Attempts allowed, in an event about a running attempt.")


def events(run: Run, since: int, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Progress events with a number above `since`, in order, at most `limit` (seed 004 plus `seq` and `time`).

    A log entry is an event with `logs`; one about the plan has an empty `stepId` and the plan's status. A generator,
    because a big plan has 40,000 events.
    """
    number, happened = itemgetter(0), _happened(run, since)
    chosen = sorted(happened, key=number) if limit is None else heapq.nsmallest(limit, happened, key=number)
    task = run.plan.task_id or run.plan.id
    for seq, step_id, what in chosen:
        head = {"seq": seq, "time": iso(what.time), "taskId": task, "stepId": step_id}
        yield head | (_of_entry(what) if isinstance(what, Entry) else _of_change(run.steps[step_id], what))


def result_view(result: Result) -> dict[str, Any]:
    """A result as JSON. An externally stored value is shown as a preview, with its reference in `large`."""
    view = result.model_dump(mode="json", exclude_none=True, exclude={"logs", "composed", "parts"})
    view |= shown_parts(result)
    if result.large:
        view |= {"value": result.large.preview + TRUNCATED, "cut": True, "length": result.large.bytes}
    return view


def taken_view(result: Result) -> dict[str, Any]:
    """Which earlier run a result is from; empty if the tool was called."""
    return {"takenFrom": result.taken_from, **shown_parts(result)} if result.taken_from else {}


def shown_parts(result: Result) -> dict[str, Any]:
    """What features keep with a result, beside its own fields under their names."""
    if not result.parts:
        return {}
    found: dict[str, Any] = result.model_dump(mode="json", exclude_none=True, include={"parts"}).get("parts", {})
    return found


def asks(state: StepState) -> list[Change]:
    """The changes with which a step asked for a decision, of a person or of the LLM."""
    return [change for before, change in pairwise([None, *state.changes]) if change and _is_ask(state, before, change)]


def _happened(run: Run, since: int) -> Iterator[tuple[int, str, Change | Entry]]:
    """Status changes and log entries after `since`, as (number, step id or "" for the plan, change); unordered."""
    for step_id, state in run.steps.items():
        if state.changes and state.changes[-1].seq > since:
            yield from ((change.seq, step_id, change) for change in _told(state) if change.seq > since)
    yield from ((entry.seq, entry.step_id or "", entry) for entry in run.log if entry.seq > since)


def _told(state: StepState) -> list[Change]:
    """The changes without those to `ready` that only led to the step's question: it is told once."""
    asked = {change.seq for change in asks(state)}
    if not asked:
        return state.changes
    following = [*(change.seq in asked for change in state.changes[1:]), False]
    return [
        change
        for change, then_asks in zip(state.changes, following, strict=True)
        if not (then_asks and change.status is Status.READY and change.seq not in asked)
    ]


def _is_ask(state: StepState, before: Change | None, change: Change) -> bool:
    """A step becomes ready a second time, or after it ran, only to ask."""
    if change.status is not Status.READY:
        return False
    return change.seq in state.asks or (before is not None and before.status in (Status.READY, Status.RUNNING))


def _of_change(state: StepState, change: Change) -> dict[str, Any]:
    event: dict[str, Any] = {"status": change.status.value}
    if change.status in DONE and state.result and change is state.changes[-1]:
        event |= {"progress": 100, "result": _short_result(state.result)}
    if change.status is Status.READY and change in asks(state):
        by_llm = change.seq not in state.asks and state.recoveries > 0
        event["awaiting"] = state.waits.get(change.seq) or ("recovery" if by_llm else "approval")
    if change.seq in state.asks:
        event |= {"digest": state.asks[change.seq], **({"asked": asked} if (asked := _asked(state, change)) else {})}
    attempts = attempts_before(state, change) if state.past else []
    return event | ({"attempts": attempts} if attempts else {})


def _asked(state: StepState, change: Change) -> dict[str, Any] | None:
    """The arguments as they were asked about; None where they are no longer kept."""
    if change.seq in state.showed:
        return state.showed[change.seq]
    is_last = change.seq == next(reversed(state.asks))
    kind = "question" if state.waits.get(change.seq) == "answer" else next(iter(state.proposal or ()), "")
    return small_args(state.asked, kind) if is_last and state.asked is not None else None


def _of_entry(entry: Entry) -> dict[str, Any]:
    line = {"time": iso(entry.time), **entry.model_dump(mode="json", include=_LOG_FIELDS, exclude_none=True)}
    return {"status": entry.status, "logs": [line]} | ({} if entry.progress is None else {"progress": entry.progress})


def _short_result(result: Result) -> dict[str, Any]:
    view = result_view(result)
    if "value" in view and not result.large:
        text = _text(view["value"])
        if len(text) > SMALL:
            view |= {"value": shorten(view["value"]), "cut": True, "length": len(text)}
    return view


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

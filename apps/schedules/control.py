"""Triggers, pauses, resumes, backfills and deletes schedules."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from pydantic import Field
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleBackfill,
    ScheduleDescription,
)
from temporalio.common import SearchAttributeKey

from plansurvive.apps.schedules.server import about, described
from plansurvive.apps.schedules.spec import BadSchedule, moment, overlap_of, zone_of
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import RPC_TIMEOUT
from plansurvive.plans.model import Value
from plansurvive.runtime.base.wait import until

MAX_BACKFILL = 1_000
"""Runs of one backfill: Temporal buffers no more."""
STARTING_SECONDS = 5.0
"""How long a triggered run may take to appear; the server needs a few milliseconds."""


_DUE = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""When a run was due; set by the server, before jitter."""
_INSTANT = timedelta(milliseconds=1)


class Triggered(Value):
    """What came of a trigger."""

    plan_id: str | None = Field(default=None, description="The run that was started; None: none yet.")
    why: str = Field(default="", description="Why none was started.")
    skipped: bool = Field(default=False, description="None will be.")


async def trigger_schedule(client: Client, name: str, overlap: str | None = None) -> Triggered:
    """Start a run now, also of a paused schedule. `overlap`: instead of the schedule's own policy.

    Raises BadSchedule, ScheduleNotFound.
    """
    policy = overlap_of(overlap) if overlap else None
    handle, before = await described(client, name)
    await _another_second(before)
    with about(name):
        await handle.trigger(overlap=policy, rpc_timeout=RPC_TIMEOUT)
    earlier, skipped = set(_started(before)), before.info.num_actions_skipped_overlap

    came: list[Triggered] = []

    async def has_come() -> bool:
        found = (await described(client, name))[1]
        came.extend(Triggered(plan_id=plan_id(each)) for each in _started(found) if each not in earlier)
        if found.info.num_actions_skipped_overlap > skipped:
            came.append(Triggered(why="a run is in progress, and the overlap policy is to skip", skipped=True))
        return bool(came)

    with suppress(TimeoutError):
        await until(has_come, STARTING_SECONDS)
    return came[0] if came else Triggered(why="it starts when the run in progress has ended")


async def pause_schedule(client: Client, name: str, note: str = "") -> None:
    """Start no further runs until `resume_schedule`; one in progress continues. Raises ScheduleNotFound."""
    handle, _ = await described(client, name)
    with about(name):
        await handle.pause(note=note or "paused by hand", rpc_timeout=RPC_TIMEOUT)


async def resume_schedule(client: Client, name: str, note: str = "") -> None:
    """Start runs again. What was due while it was paused is not made up for. Raises ScheduleNotFound."""
    handle, _ = await described(client, name)
    with about(name):
        await handle.unpause(note=note or "resumed by hand", rpc_timeout=RPC_TIMEOUT)


async def backfill_schedule(client: Client, name: str, start: str, end: str, overlap: str = "buffer") -> list[datetime]:
    """Start the runs that were due from `start` to `end`, both included, and were not; returns their times, in UTC.

    `start` and `end`: ISO 8601, in the schedule's time zone unless they have an offset. Raises BadSchedule,
    ScheduleNotFound.
    """
    policy = overlap_of(overlap)
    handle, found = await described(client, name)
    spec = found.schedule.spec
    zone = zone_of(spec.time_zone_name or "UTC")
    begin, last = moment(start, zone, "--from"), moment(end, zone, "--to")
    if begin > last:
        raise BadSchedule("--from is after --to; the range is empty")
    if last > datetime.now(UTC):
        raise BadSchedule("--to is in the future; a backfill starts what was due in the past")
    times = await matching_times(client, name, begin, last)
    if len(times) > MAX_BACKFILL:
        raise BadSchedule(f"{len(times)} runs were due in that time; backfill at most {MAX_BACKFILL} at once")
    spans = _spans(begin, times, spec.jitter or timedelta())
    due = await _due(client, name, spans)
    missed = [each for each in spans if not _has_one(due, *each)]  # Temporal would start an ended one again
    if missed:
        with about(name):
            ranges = [ScheduleBackfill(before, time, policy) for before, time in missed]
            await handle.backfill(*ranges, rpc_timeout=RPC_TIMEOUT)
    return [time for _, time in missed]


def _spans(begin: datetime, times: Sequence[datetime], jitter: timedelta) -> list[tuple[datetime, datetime]]:
    """For each run a span that holds nothing but when it is due, and when it starts: later, by jitter.

    Jitter never reaches the time at which the next run is due.
    """
    before = [begin - _INSTANT, *times]
    return [(max(time - jitter - _INSTANT, last), time) for last, time in zip(before, times, strict=False)]


async def _due(client: Client, name: str, spans: Sequence[tuple[datetime, datetime]]) -> list[datetime]:
    """When the runs were due that there are since the first of the spans, in order."""
    if not spans:
        return []
    since = spans[0][0].isoformat()
    query = f"TemporalScheduledById = '{name}' AND TemporalScheduledStartTime >= '{since}'"
    with about(name):
        found = [each.typed_search_attributes.get(_DUE) async for each in client.list_workflows(query)]
    return sorted(time for time in found if time is not None)


def _has_one(ordered: Sequence[datetime], start: datetime, end: datetime) -> bool:
    """Whether one of the times lies after `start`, and not after `end`."""
    place = bisect_right(ordered, start)
    return place < len(ordered) and ordered[place] <= end


async def matching_times(client: Client, name: str, start: datetime, end: datetime) -> list[datetime]:
    """The times from `start` to `end`, both included, at which runs are due, as the server computes them, in UTC."""
    request = ListScheduleMatchingTimesRequest(namespace=client.namespace, schedule_id=name)
    request.start_time.FromDatetime(start.astimezone(UTC) - _INSTANT)  # the server leaves out the start
    request.end_time.FromDatetime(end.astimezone(UTC))
    with about(name):
        found = await client.workflow_service.list_schedule_matching_times(request, timeout=RPC_TIMEOUT)
    return [time.ToDatetime(UTC) for time in found.start_time]


async def delete_schedule(client: Client, name: str) -> None:
    """Delete a schedule. Its runs stay, and one in progress continues. Raises ScheduleNotFound."""
    handle, _ = await described(client, name)
    with about(name):
        await handle.delete(rpc_timeout=RPC_TIMEOUT)


async def _another_second(found: ScheduleDescription) -> None:
    """Wait until no run has the id that one of this second gets: Temporal would leave it out without a word."""
    latest = max((each.scheduled_at for each in found.info.recent_actions), default=None)
    if latest is not None:
        left = latest.replace(microsecond=0) + timedelta(seconds=1) - datetime.now(UTC)
        await asyncio.sleep(min(max(left.total_seconds(), 0.0), 1.0))


def _started(found: ScheduleDescription) -> Iterable[str]:
    actions = [each.action for each in found.info.recent_actions]
    return [each.workflow_id for each in actions if isinstance(each, ScheduleActionExecutionStartWorkflow)]

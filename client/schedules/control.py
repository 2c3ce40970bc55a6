"""Triggers, pauses, resumes, backfills and deletes schedules."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import Field
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleBackfill,
    ScheduleDescription,
    ScheduleOverlapPolicy,
)

from client.ids import plan_id
from client.rpc import RPC_TIMEOUT
from client.schedules.server import about, described
from client.schedules.spec import BadSchedule, moment, overlap_of, zone_of
from plans.model import Value
from runtime.wait import until

MAX_BACKFILL = 1_000
"""Runs of one backfill: Temporal buffers no more."""
STARTING_SECONDS = 5.0
"""How long a triggered run may take to appear; the server needs a few milliseconds."""


class Triggered(Value):
    """What came of a trigger."""

    plan_id: str | None = Field(default=None, description="The run that was started; None: none yet.")
    why: str = Field(default="", description="Why none was started.")
    skipped: bool = Field(default=False, description="None will be.")


async def trigger_schedule(client: Client, name: str, overlap: str | None = None) -> Triggered:
    """Start a run now, also of a paused schedule. `overlap`: instead of the schedule's own policy.

    Raises BadSchedule, ScheduleNotFound.
    """
    handle, before = await described(client, name)
    policy = overlap_of(overlap) if overlap else None
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
    """Start the runs that were due from `start` to `end`, both included; returns their times, in UTC.

    A time of which there was a run is left out by Temporal: ids are never reused. `start` and `end`: ISO 8601, in the
    schedule's time zone unless they have an offset. Raises BadSchedule, ScheduleNotFound.
    """
    handle, found = await described(client, name)
    zone = zone_of(found.schedule.spec.time_zone_name or "UTC")
    begin, until_ = moment(start, zone, "--from"), moment(end, zone, "--to")
    if begin > until_:
        raise BadSchedule("--from is after --to; the range is empty")
    if until_ > datetime.now(UTC):
        raise BadSchedule("--to is in the future; a backfill starts what was due in the past")
    times = await matching_times(client, name, begin, until_)
    if len(times) > MAX_BACKFILL:
        raise BadSchedule(f"{len(times)} runs were due in that time; backfill at most {MAX_BACKFILL} at once")
    if times:
        with about(name):
            policy: ScheduleOverlapPolicy = overlap_of(overlap)
            await handle.backfill(ScheduleBackfill(begin, until_, policy), rpc_timeout=RPC_TIMEOUT)
    return times


async def matching_times(client: Client, name: str, start: datetime, end: datetime) -> list[datetime]:
    """The times from `start` to `end` at which runs are due, as the server computes them, in UTC."""
    request = ListScheduleMatchingTimesRequest(namespace=client.namespace, schedule_id=name)
    request.start_time.FromDatetime(start.astimezone(UTC))
    request.end_time.FromDatetime(end.astimezone(UTC))
    with about(name):
        found = await client.workflow_service.list_schedule_matching_times(request, timeout=RPC_TIMEOUT)
    return [time.ToDatetime(UTC) for time in found.start_time]


async def delete_schedule(client: Client, name: str) -> None:
    """Delete a schedule. Its runs stay, and one in progress continues. Raises ScheduleNotFound."""
    handle, _ = await described(client, name)
    with about(name):
        await handle.delete(rpc_timeout=RPC_TIMEOUT)


def _started(found: ScheduleDescription) -> Iterable[str]:
    actions = [each.action for each in found.info.recent_actions]
    return [each.workflow_id for each in actions if isinstance(each, ScheduleActionExecutionStartWorkflow)]

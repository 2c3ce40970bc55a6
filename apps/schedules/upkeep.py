"""The schedule that collects garbage: one for a task queue, whose workers share a state directory."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
)

from plansurvive.apps.schedules.server import PRUNE, about
from plansurvive.features.upkeep.model import PruneOrder


def name_of(queue: str) -> str:
    """The name of the schedule of a task queue."""
    return f"prune-{queue}"[:150]


async def schedule_prune(
    client: Client, queue: str, every: timedelta, *, older_than: timedelta, records: timedelta | None = None
) -> str:
    """Prune the state directory of a queue's workers at this interval; replaces what was set before. Returns its name.

    `plan schedule list` shows it; it is paused, triggered and deleted like any other. Raises NotConnected, BadSchedule.
    """
    order = PruneOrder(older_than=older_than.total_seconds(), records=records.total_seconds() if records else None)
    name = name_of(queue)
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(PRUNE, order, id=name, task_queue=queue),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    with about(name):
        try:
            await client.create_schedule(name, schedule, memo={"title": "remove what no plan needs"})
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(name).update(lambda _: ScheduleUpdate(schedule=schedule))
    return name

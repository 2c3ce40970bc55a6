"""What all functions on schedules share: their names, their errors, and which schedules are ours.

A schedule's id on the server is its name. Other programs may have schedules in the same namespace: ours are those that
start a PlanWorkflow, and the one that collects garbage.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from temporalio.api.common.v1 import Memo
from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleListActionStartWorkflow,
    ScheduleListDescription,
)
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.apps.schedules.spec import BadSchedule
from plansurvive.client import ids
from plansurvive.client.errors import PlanNotFound, Sought
from plansurvive.client.rpc import RPC_TIMEOUT, translated
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.errors import PlanError

KIND = "PlanWorkflow"
PRUNE = "PruneWorkflow"
"""What a schedule starts that collects garbage (`apps.schedules.upkeep`)."""
MAX_NAME = 150
"""Characters: Temporal adds a time to the ids of the runs, and a resumed one gets a number."""
_INVALID = "Invalid schedule spec: "
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class ScheduleNotFound(PlanNotFound):
    """The server has no schedule of plans with this name."""

    code = "SCHEDULE_NOT_FOUND"


class ScheduleExists(PlanError):
    """A schedule with this name exists already."""

    code = "SCHEDULE_EXISTS"


def checked_name(name: str) -> str:
    """The name of a new schedule. Raises BadSchedule."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        shown = name if len(name) <= 60 else name[:57] + "..."
        raise BadSchedule(f"{shown!r} cannot name a schedule: use 1 to {MAX_NAME} letters, digits, '_', '-' or '.'")
    if name.startswith((ids.PREFIX, ids.AGENT)):
        raise BadSchedule(f"{name!r} begins like a workflow id; choose another name")
    return name


@contextmanager
def about(name: str) -> Iterator[None]:
    """Translates RPC errors raised inside into PlanErrors about this schedule."""
    try:
        yield
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise unknown(name) from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT and error.message.startswith(_INVALID):
            why = error.message.removeprefix(_INVALID)
            fields = "its fields are minute, hour, day of the month, month and day of the week"
            raise BadSchedule(f"--cron: {why}; {fields}") from error  # what else there is was checked before
        raise translated(error, "") from error


def unknown(name: str, near: str = "") -> ScheduleNotFound:
    """The error about a schedule that does not exist. `near`: the name that is probably meant."""
    return ScheduleNotFound(
        Sought(f"there is no schedule {name[:100]!r}", "`plan schedule list` lists them", near=near)
    )


async def described(client: Client, name: str) -> tuple[ScheduleHandle, ScheduleDescription]:
    """A schedule of ours. Raises ScheduleNotFound, with the nearest name, and NotConnected."""
    handle = client.get_schedule_handle(name)
    try:
        with about(name):
            found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            action = found.schedule.action
            if isinstance(action, ScheduleActionStartWorkflow) and action.workflow in (KIND, PRUNE):
                return handle, found
    except ScheduleNotFound:
        pass
    raise unknown(name, Hints().near(name, [each.id async for each in all_of_us(client)]))


async def all_of_us(client: Client) -> AsyncIterator[ScheduleListDescription]:
    """The schedules that start plans, in the order of the server. Raises NotConnected."""
    with about(""):
        async for each in await client.list_schedules():
            action = each.schedule.action if each.schedule else None
            if isinstance(action, ScheduleListActionStartWorkflow) and action.workflow in (KIND, PRUNE):
                yield each


async def memo_of(client: Client, memo: Memo) -> dict[str, Any]:
    """A schedule's memo without the fields that cannot be decoded; anybody may have written it."""
    found: dict[str, Any] = {}
    for name, payload in memo.fields.items():
        with suppress(Exception):  # decoding alone: whatever a parser raises for the bytes of a payload
            [found[name]] = await client.data_converter.decode([payload])
    return found


async def request_of(client: Client, action: ScheduleActionStartWorkflow) -> Mapping[str, Any]:
    """What each run is started with: plan and options; empty if this machine cannot read it."""
    with suppress(Exception):  # decoding alone; a large plan may be stored on another machine
        [found] = await client.data_converter.decode(list(action.args))
        return found if isinstance(found, dict) else {}
    return {}

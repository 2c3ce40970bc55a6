"""Reads the audit record of a workflow from its histories on the server: all runs of a start of it, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.audit.chain import chained, head, origin
from plansurvive.features.audit.entries import Act, Entry
from plansurvive.features.audit.events import Reader
from plansurvive.features.audit.outcomes import Sent

RPC_TIMEOUT = timedelta(seconds=10)
"""Deadline of an RPC."""
AT_ONCE = 50
"""Events that are read before others get their turn."""


@dataclass(frozen=True)
class Record:
    """The audit record of one workflow."""

    workflow_id: str
    run_id: str
    """Of its first run."""
    entries: list[Entry]
    ended: bool
    """Whether nothing will be added."""
    sent: tuple[Sent, ...] = ()
    """The signals of the last run of the workflow, in order, if history does not say what became of them."""
    last: str = ""
    """The last run that it has."""
    lacks: tuple[str, ...] = ()
    """Runs before that the server no longer has."""

    @property
    def began(self) -> datetime:
        """When it begins."""
        return self.entries[0].time if self.entries else datetime.min.replace(tzinfo=UTC)

    @property
    def origin(self) -> str:
        """What the first entry is bound to."""
        return origin(self.workflow_id, self.run_id)


async def runs_of(client: Client, workflow_id: str) -> dict[str, list[str]]:
    """All runs that the server knows of a workflow id: by the first run of each start, in order.

    Runs that follow one another (continued as new, reset, retried, repeated) are of one start. Raises RPCError:
    NOT_FOUND if there are none.
    """
    found = dict[str, WorkflowExecutionDescription]()
    quoted = workflow_id.replace("\\", "\\\\").replace("'", "\\'")
    listed = [each.run_id async for each in client.list_workflows(f"WorkflowId = '{quoted}'")]
    for name in (None, *listed):  # the newest one first, which the server's index may not have yet
        try:
            handle = client.get_workflow_handle(workflow_id, run_id=name)
            description = await handle.describe(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND or name is None:
                raise
            continue  # deleted since it was listed
        found[description.run_id or ""] = description
    starts = dict[str, list[str]]()
    for run_id, description in sorted(found.items(), key=lambda item: item[1].start_time):
        first = description.raw_description.workflow_execution_info.first_run_id or run_id
        starts.setdefault(first, []).append(run_id)
    return starts


async def read(client: Client, workflow_id: str, first: str = "") -> Record:
    """The record of a start of a workflow as the server's histories give it. `first`: its first run; else the newest.

    Raises RPCError: NOT_FOUND if there is no such workflow any more.
    """
    starts = await runs_of(client, workflow_id)
    first = first or list(starts)[-1]
    return await read_runs(client, workflow_id, first, starts[first])


async def read_runs(client: Client, workflow_id: str, first: str, runs: Sequence[str]) -> Record:
    """The record of these runs, which are all of one start. Raises RPCError."""
    reader, acts, left, done = Reader(client, workflow_id), list[Act](), list(runs), list[str]()
    while left:
        run_id, following = left.pop(0), ""
        done.append(run_id)
        async for found, following in _acts(client, reader, run_id):  # noqa: B007 - that of its last event
            acts += found
        if following and following not in [*done, *left]:  # it began since the runs were listed
            left.insert(0, following)
    return await _record(reader, first, acts, done)


async def read_alone(client: Client, workflow_id: str, run_id: str) -> Record | None:
    """The record of a run that is the only one of its start, as most are; None if it goes on from another, or in one.

    Whether somebody has reset it is not asked. Raises RPCError.
    """
    reader, acts, following = Reader(client, workflow_id), list[Act](), ""
    async for found, following in _acts(client, reader, run_id):  # noqa: B007 - as above
        if reader.before:
            return None
        acts += found
    return None if following else await _record(reader, run_id, acts, [run_id])


async def _acts(client: Client, reader: Reader, run_id: str) -> AsyncIterator[tuple[list[Act], str]]:
    """What the events of a run say, each with the run that follows, if it is the last of one that continues."""
    reader.of_next_run(run_id)
    count = 0
    async for event in client.get_workflow_handle(reader.workflow_id, run_id=run_id).fetch_history_events():
        ended = getattr(event, event.WhichOneof("attributes") or "", None)
        yield await reader.acts(event), getattr(ended, "new_execution_run_id", "")
        count += 1
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)  # decoding does not let go by itself


async def _record(reader: Reader, first: str, acts: Sequence[Act], done: Sequence[str]) -> Record:
    workflow_id, entries = reader.workflow_id, list[Entry]()
    start = origin(workflow_id, first)
    for place in range(0, len(acts), AT_ONCE):
        entries += chained(acts[place : place + AT_ONCE], head(entries, start), place + 1)
        await asyncio.sleep(0)
    ended = bool(acts) and acts[-1].action == "ended"
    untold = () if reader.signals.are_told else tuple(reader.signals.sent)
    return Record(workflow_id, first, entries, ended, untold, done[-1], tuple(sorted(reader.before - {*done})))

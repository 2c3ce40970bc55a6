"""Reads the audit record of a workflow from its history on the server: all runs of it, in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client, WorkflowExecutionStatus

from plans.audit.chain import FORM, chained, origin
from plans.audit.entries import Act, Entry
from plans.audit.receipts import Sent
from runtime.audit.events import Reader

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
    form: int = FORM
    """Version of its form."""
    sent: tuple[Sent, ...] = ()
    """The signals of the last run of the workflow, in order, if history does not say what became of them."""

    @property
    def origin(self) -> str:
        """What the first entry is bound to."""
        return origin(self.workflow_id, self.run_id, self.form)


async def first_run(client: Client, workflow_id: str) -> tuple[str, bool]:
    """The first run of a workflow, and whether the workflow has ended. Raises RPCError."""
    description = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
    first = description.raw_description.workflow_execution_info.first_run_id or description.run_id or ""
    return first, description.status is not WorkflowExecutionStatus.RUNNING


async def read(client: Client, workflow_id: str, form: int = FORM) -> Record:
    """The record as the server's history gives it, in this form.

    Raises RPCError: NOT_FOUND if there is no such workflow any more.
    """
    first, _ = await first_run(client, workflow_id)
    reader, acts, run_id = Reader(client, workflow_id, form), list[Act](), first
    while run_id:
        following, count = "", 0
        async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
            acts += await reader.acts(event)
            following = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            count += 1
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)  # decoding does not let go by itself
        run_id = following
        if run_id:
            reader.of_next_run()
    ended = bool(acts) and acts[-1].action == "ended"
    entries = chained(acts, origin(workflow_id, first, form))
    untold = () if reader.signals.are_told else tuple(reader.signals.sent)
    return Record(workflow_id, first, entries, ended, form, untold)

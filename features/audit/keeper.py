"""Keeps the audit records of plans and agents that have ended: the part of a worker that writes them, once each.

It asks the server now and then what has ended, however it ended: completed, cancelled, terminated. A record is made
from the history, which the server keeps for its retention, so a worker that was away catches up when it is back. It
reads one history at a time and lets go between events: the steps of running plans come first.

The record is made of the history, which is append-only and has time and client of each message. Rejected: a record that
the workflow writes beside it (a second truth, a command per act, and no word of what ends a plan from outside).
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.audit import files, history
from plansurvive.features.audit.chain import head
from plansurvive.features.audit.ledger import Ledger
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings

LOG = logging.getLogger(__name__)
EVERY = 30.0
"""Seconds between two looks."""
OVERLAP = timedelta(minutes=10)
"""How much later than a workflow's end the server's index may have it."""
KINDS = "'PlanWorkflow', 'AgentWorkflow', 'CodingAgentWorkflow', 'ChangesWorkflow'"

ALONE = frozenset({
    WorkflowExecutionStatus.COMPLETED,
    WorkflowExecutionStatus.FAILED,
    WorkflowExecutionStatus.CANCELED,
    WorkflowExecutionStatus.TIMED_OUT,
})  # fmt: skip
"""How a run ends that may be the only one of its start; a reset terminates one that has not ended."""


class Keeper:
    """Writes the records of what has ended on one task queue."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._since: datetime | None = None
        self._done = set[tuple[str, str]]()

    async def keep(self, *, every: float = EVERY) -> None:
        """Look again and again, until cancelled. A server or disk that fails is tried again with the next look."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.look()
            except (RPCError, OSError, PlanError) as error:
                LOG.warning("audit records could not be written: %s", error)

    async def look(self) -> int:
        """Write the records that are missing; returns how many there were. Raises RPCError, OSError, SettingError."""
        began, written = datetime.now(UTC), 0
        query = f"WorkflowType IN ({KINDS}) AND TaskQueue = '{self._quoted}' AND ExecutionStatus != 'Running'"
        if self._since is not None:
            query += f" AND CloseTime > '{self._since.isoformat()}'"
        seen = set[tuple[str, str]]()
        async for each in self._client.list_workflows(query):
            key = (each.id, each.run_id or "")
            seen.add(key)
            if key not in self._done:
                written += await self._write(each)
        self._since, self._done = began - OVERLAP, seen
        return written

    @property
    def _quoted(self) -> str:
        return self._settings.task_queue.replace("\\", "\\\\").replace("'", "\\'")

    async def _write(self, listed: WorkflowExecution) -> int:
        directory, name, run_id = self._settings.state_dir, listed.id, listed.run_id or ""
        if await asyncio.to_thread(files.has_run, directory, name, run_id):
            return 0
        written = 0
        try:
            # Most have one run, which says so itself: then its history is all that the server is asked for.
            is_new = listed.status in ALONE and not files.path_of(directory, name, run_id).exists()
            alone = await history.read_alone(self._client, name, run_id) if is_new else None
            if alone is not None:
                return await asyncio.to_thread(self._kept, alone)
            for first, runs in (await history.runs_of(self._client, name)).items():
                if run_id in runs and not await asyncio.to_thread(files.has_run, directory, name, runs[-1]):
                    record = await history.read_runs(self._client, name, first, runs)
                    written += await asyncio.to_thread(self._kept, record)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise  # else deleted since it was listed
        return written

    def _kept(self, record: history.Record) -> int:
        """Keep a record that is whole, and goes on where the one that is kept ends; returns how many were written."""
        if not record.ended or record.lacks or not self._goes_on(record):
            return 0
        files.write(self._settings, record)
        Ledger.of(self._settings).kept(record.workflow_id, record.run_id, head(record.entries, record.origin))
        return 1

    def _goes_on(self, record: history.Record) -> bool:
        """Whether the record goes on where the one that is kept ends, if one is."""
        path = files.path_of(self._settings.state_dir, record.workflow_id, record.run_id)
        if not path.exists():
            return True
        kept = files.read_file(path, record.workflow_id).record.entries
        goes_on = list(record.entries[: len(kept)]) == list(kept)
        if not goes_on:
            LOG.warning("%s is not what the server says, and stays: `plan audit %s --verify`", path, record.workflow_id)
        return goes_on

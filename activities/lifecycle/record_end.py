"""The activities `record_end` and `write_summary`: the permanent record of a plan that has ended.

They write SUMMARY.md for people into the state directory, and remove what commands had as /tmp. The result of
`record_end` holds the summary, the text and the Run, so that a client can show an ended plan from its history, without
a worker that replays it. Idempotent: the same Run gives the same record.

Check and summary are local activities: one event each instead of six. 50 plans of 20 steps took 1.27 times as long as
workflows by hand with regular ones, 1.12 with local ones. They read, or write the same file again; no tool ever is one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity
from temporalio.common import RawValue

from plansurvive.plans.activity_io import EndRecord, PlanEnd, SummaryFile
from plansurvive.plans.definition.language import PLAIN, Language
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import run_of
from plansurvive.plans.views.ended import ended
from plansurvive.runtime import scratch
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.sealing import UNSEALED, Sealing
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore, apart

RUN_BYTES = 32_768
"""A Run of more bytes is stored apart from its record. A shorter one in it saves a file, and its wait for the disk."""
CLAIM_SECONDS = 5.0
"""Timeout for storing the record, in seconds; history has it too."""


@dataclass(frozen=True)
class SummaryWriter:
    """Writes summaries to `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path
    sealing: Sealing = UNSEALED
    """Encrypts them."""

    @activity.defn(name="write_summary", no_thread_cancel_exception=True)
    def write_summary(self, file: SummaryFile) -> str:
        """Write the summary; returns its path. The activity's retry policy retries OSError, such as a full disk.

        It survives a power cut: the history of agents is recovered from theirs.
        """
        return self.write(file, durable=True)

    def write(self, file: SummaryFile, *, durable: bool) -> str:
        """Write the summary, `durable` as of `write_whole`; returns its path."""
        folder = self.directory / "runs" / Path(file.plan_id).name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = self.sealing.text(file.markdown)
        write_whole(folder / "SUMMARY.md", text.encode(), ".summary-", durable=durable)
        if activity.in_activity() and (workflow_id := activity.info().workflow_id):
            scratch.discard(self.directory, workflow_id)
        return str(folder / "SUMMARY.md")


@dataclass(frozen=True)
class EndRecorder:
    """Records the end of plans: summaries as files, large Runs in the value store."""

    summaries: SummaryWriter
    values: ValueStore
    language: Language = PLAIN
    views: ViewSet = NO_VIEWS
    """What features add to the Run that is summarised."""

    @activity.defn(name="record_end")
    async def record_end(self, run: RawValue, summarised: PlanEnd | None) -> EndRecord:
        """Record the end of a plan, whose Run as JSON text is `run`, and summarise it unless that has been done.

        The activity's retry policy retries OSError, such as a full disk.
        """
        written = run.payload.data.decode()

        async def ending() -> PlanEnd:
            if summarised is not None:
                return summarised
            return await apart(len(written), lambda: ended(run_of(written, self.language, self.views)))

        # Side by side: storing a long Run waits for the disk. What follows does not, as history has it too; what is
        # short is summarised and written at once, which takes less time than handing it to a thread.
        end, kept = await asyncio.gather(ending(), self._kept(written))
        whole = end.record.model_copy(update={"run": kept})
        await apart(len(end.file.markdown), lambda: self.summaries.write(end.file, durable=False))
        return whole.model_copy(update={"claim": await self._claim(whole)})

    async def _kept(self, written: str) -> LargeValue | str:
        is_short = len(written) <= RUN_BYTES and len(written.encode()) <= RUN_BYTES  # a long one is not copied for that
        return written if is_short else await self.values.put(written)

    async def _claim(self, record: EndRecord) -> LargeValue | None:
        """The record's copy in the value store; None if storing fails, which does not fail the plan."""
        # Not synced: where a crash of the machine has damaged the copy, the record is read from history.
        driver = self.values.driver
        copies = ValueStore(driver.unsynced()) if isinstance(driver, LocalDirectory) else self.values
        try:
            async with asyncio.timeout(CLAIM_SECONDS):
                kept = await copies.put(record.model_dump_json(exclude_defaults=True))
        except Exception as error:  # the stores raise errors of many kinds
            activity.logger.warning("the record of the plan's end was not stored: %s", error)
            return None
        return kept.model_copy(update={"preview": ""})  # `plan list` loads the memo of every plan: keep it small

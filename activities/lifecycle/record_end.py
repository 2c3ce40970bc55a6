"""The activities `record_end` and `write_summary`: the permanent record of a plan that has ended.

They write SUMMARY.md for people into the state directory. The result of `record_end` holds the summary, the text and
the Run, so that a client can show an ended plan from its history, without a worker that replays it. Idempotent: the
same Run gives the same record.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.common import RawValue

from plans.activity_io import EndRecord, SummaryFile
from plans.audit.receipts import Receipts
from plans.large_value import LargeValue
from plans.run import Run, run_of
from plans.views.queries import TEXT_STEPS
from plans.views.summary import summary_markdown, summary_of
from plans.views.text import text
from runtime.atomic_file import write_whole
from runtime.keys.at_rest import AtRest
from runtime.value_store import ValueStore

LISTED = 500
"""SUMMARY.md lists the steps of a plan of at most this many."""
CLAIM_SECONDS = 5.0
"""Timeout for storing the record, in seconds; history has it too."""


@dataclass(frozen=True)
class SummaryWriter:
    """Writes summaries to `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path
    rest: AtRest = field(default_factory=AtRest)
    """Encrypts them."""

    @activity.defn(name="write_summary")
    def write_summary(self, file: SummaryFile) -> str:
        """Write the summary; returns its path. The activity's retry policy retries OSError, such as a full disk."""
        folder = self.directory / "runs" / Path(file.plan_id).name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / "SUMMARY.md", self.rest.text(file.markdown).encode(), ".summary-")
        return str(folder / "SUMMARY.md")


@dataclass(frozen=True)
class EndRecorder:
    """Records the end of plans: summaries as files, large Runs in the value store."""

    summaries: SummaryWriter
    values: ValueStore

    @activity.defn(name="record_end")
    async def record_end(self, ended: RawValue) -> EndRecord:
        """Record the end of the Run in `ended`, which is its JSON text; returns the record.

        The activity's retry policy retries OSError, such as a full disk.
        """
        written = ended.payload.data.decode()
        (summary, shown, file, receipts), large = await asyncio.gather(
            asyncio.to_thread(_summarized, written), self.values.kept(written)
        )
        record = EndRecord(summary=summary, text=shown, receipts=receipts, run=large or written)
        # Side by side: each waits for the disk.
        claim, _ = await asyncio.gather(self._claim(record), asyncio.to_thread(self.summaries.write_summary, file))
        return record.model_copy(update={"claim": claim})

    async def _claim(self, record: EndRecord) -> LargeValue | None:
        """The record's copy in the value store; None if storing fails, which does not fail the plan."""
        try:
            async with asyncio.timeout(CLAIM_SECONDS):
                kept = await self.values.put(record.model_dump_json(exclude_defaults=True))
        except Exception as error:  # the stores raise errors of many kinds
            activity.logger.warning("the record of the plan's end was not stored: %s", error)
            return None
        return kept.model_copy(update={"preview": ""})  # `plan list` loads the memo of every plan: keep it small


def _summarized(written: str) -> tuple[dict[str, Any], str, SummaryFile, Receipts]:
    """The summary of a Run that is JSON text, the text of its steps, SUMMARY.md, and its receipts of signals."""
    run = run_of(written)
    summary, shown = summary_of(run), text(run, TEXT_STEPS)
    markdown = summary_markdown(summary, shown if len(run.plan.steps) <= TEXT_STEPS else _listed(run))
    return summary.to_json(), shown, SummaryFile(plan_id=run.plan.id or "", markdown=markdown), run.receipts


def _listed(run: Run) -> str:
    return text(run) if len(run.plan.steps) <= LISTED else ""

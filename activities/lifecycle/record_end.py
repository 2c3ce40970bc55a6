"""The activities `record_end` and `write_summary`: what is left of a plan that has ended.

SUMMARY.md for people, in the state directory; and as its result the summary, the text and the Run, which anybody can
read who reads history: whoever looks at an ended plan needs no worker, and none must replay it. It is repeatable: the
same Run gives the same record.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.common import RawValue

from plans.activity_io import EndRecord, LargeValue, SummaryFile
from plans.run import Run, run_of
from plans.views.queries import TEXT_STEPS
from plans.views.summary import summary_markdown, summary_of
from plans.views.text import text
from runtime.atomic_file import write_whole
from runtime.value_store import ValueStore

LISTED = 500
"""Steps of a plan that SUMMARY.md lists one by one."""
CLAIM_SECONDS = 5.0
"""How long storage may take to keep the record: it stands in history as well."""


@dataclass(frozen=True)
class SummaryWriter:
    """Keeps summaries under `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path

    @activity.defn(name="write_summary")
    def write_summary(self, file: SummaryFile) -> str:
        """Write the summary; returns its path. OSError (a full disk, say) is tried again by the activity's policy."""
        folder = self.directory / "runs" / Path(file.plan_id).name
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "SUMMARY.md", file.markdown.encode(), ".summary-")
        return str(folder / "SUMMARY.md")


@dataclass(frozen=True)
class EndRecorder:
    """Keeps the end of plans: summaries as files, large Runs where large values are."""

    summaries: SummaryWriter
    values: ValueStore

    @activity.defn(name="record_end")
    async def record_end(self, ended: RawValue) -> EndRecord:
        """Keep the Run whose JSON text this is; returns the record.

        OSError (a full disk, say) is tried again by the activity's policy.
        """
        written = ended.payload.data.decode()
        (summary, shown), large = await asyncio.gather(
            asyncio.to_thread(self._summarize, written), self.values.kept(written)
        )
        record = EndRecord(summary=summary, text=shown, run=large or written)
        return record.model_copy(update={"claim": await self._claim(record)})

    async def _claim(self, record: EndRecord) -> LargeValue | None:
        """Where the record is kept besides history; None when storage does not take it, which ends no plan."""
        try:
            async with asyncio.timeout(CLAIM_SECONDS):
                kept = await self.values.put(record.model_dump_json(exclude_defaults=True))
        except Exception as error:  # of storage of any kind
            activity.logger.warning("the record of the plan's end was not stored: %s", error)
            return None
        return kept.model_copy(update={"preview": ""})  # lists of plans carry the memo

    def _summarize(self, written: str) -> tuple[dict[str, Any], str]:
        run = run_of(written)
        summary, shown = summary_of(run), text(run, TEXT_STEPS)
        markdown = summary_markdown(summary, shown if len(run.plan.steps) <= TEXT_STEPS else _listed(run))
        self.summaries.write_summary(SummaryFile(plan_id=run.plan.id or "", markdown=markdown))
        return summary.to_json(), shown


def _listed(run: Run) -> str:
    return text(run) if len(run.plan.steps) <= LISTED else ""

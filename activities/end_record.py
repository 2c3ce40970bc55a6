"""The activity `record_end`: what is left of a plan that has ended.

SUMMARY.md for people, in the state directory; and as its result the summary, the text and the Run, which anybody can
read who reads history: whoever looks at an ended plan needs no worker, and none must replay it. It is repeatable: the
same Run gives the same record.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.summary import SummaryWriter
from activities.values import ValueStore
from plans import inquiry, render
from plans.calls import EndedRun, EndRecord, SummaryFile
from plans.run import Run


@dataclass(frozen=True)
class EndRecorder:
    """Keeps the end of plans: summaries as files, large Runs where large values are."""

    summaries: SummaryWriter
    values: ValueStore

    @activity.defn(name="record_end")
    async def record_end(self, ended: EndedRun) -> EndRecord:
        """Keep it; returns the record. OSError (a full disk, say) is tried again by the activity's policy."""
        summary, text = await asyncio.to_thread(self._summarize, ended)
        is_large = len(ended.run) > self.values.inline_bytes
        run = await self.values.put(ended.run) if is_large else ended.run
        return EndRecord(summary=summary, text=text, run=run)

    def _summarize(self, ended: EndedRun) -> tuple[dict[str, Any], str]:
        view = inquiry.view(Run.model_validate_json(ended.run))
        summary = render.summary_of(view)
        markdown = render.summary_markdown(summary, view)
        self.summaries.write_summary(SummaryFile(plan_id=ended.plan_id, markdown=markdown))
        return summary, render.text(view, inquiry.TEXT_STEPS)

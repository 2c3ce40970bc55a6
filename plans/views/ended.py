"""What remains of a plan that has ended, for people: its summary, its text, and SUMMARY.md."""

from __future__ import annotations

from plansurvive.plans.activity_io import EndRecord, PlanEnd, SummaryFile
from plansurvive.plans.run import Run
from plansurvive.plans.views.queries import TEXT_STEPS
from plansurvive.plans.views.summary import summary_markdown, summary_of
from plansurvive.plans.views.text import texts

LISTED = 500
"""SUMMARY.md lists the steps of a plan of at most this many."""


def ended(run: Run) -> PlanEnd:
    """The run, summarised."""
    summary, steps = summary_of(run), len(run.plan.steps)
    shown, *longer = texts(run, [TEXT_STEPS, None] if TEXT_STEPS < steps <= LISTED else [TEXT_STEPS])
    listed = longer[0] if longer else shown if steps <= TEXT_STEPS else ""
    file = SummaryFile(plan_id=run.plan.id or "", markdown=summary_markdown(summary, listed))
    record = EndRecord(summary=summary.to_json(), text=shown, receipts=run.receipts, run="")
    return PlanEnd(record=record, file=file)

"""What remains of a plan that has ended, for people: its summary, its text, and SUMMARY.md; and who makes that.

The activity `record_end` summarises the Run that it is given as text: in the workflow, every replay would do so again.
A Run of many steps would have to be parsed for that, and be in memory twice, so the workflow summarises it and sends
both. `for_record` decides; the activity takes what it is given.
"""

from __future__ import annotations

from plansurvive.plans.activity_io import EndRecord, PlanEnd, SummaryFile
from plansurvive.plans.run import Run
from plansurvive.plans.views.queries import TEXT_STEPS
from plansurvive.plans.views.summary import summary_markdown, summary_of
from plansurvive.plans.views.text import texts

MANY_STEPS = 1_000
"""The workflow summarises a Run of more steps; of 10,000, that saves 40 MB."""
LISTED = 500
"""SUMMARY.md lists the steps of a plan of at most this many."""


def for_record(run: Run) -> PlanEnd | None:
    """What the workflow sends along with the Run; None: the activity summarises it."""
    return ended(run) if len(run.steps) > MANY_STEPS else None


def ended(run: Run) -> PlanEnd:
    """The run, summarised."""
    summary, steps = summary_of(run), len(run.plan.steps)
    shown, *longer = texts(run, [TEXT_STEPS, None] if TEXT_STEPS < steps <= LISTED else [TEXT_STEPS])
    listed = longer[0] if longer else shown if steps <= TEXT_STEPS else ""
    file = SummaryFile(plan_id=run.plan.id or "", markdown=summary_markdown(summary, listed))
    record = EndRecord(summary=summary.to_json(), text=shown, receipts=run.receipts, run="")
    return PlanEnd(record=record, file=file)

"""The end of a run of the workflow: what the next one goes on with or, when the plan has ended, its record.

The record is kept by the activity `record_end`; the summary in it is what the workflow returns. The activity is local:
it may well be done twice, and the plan ends with this workflow task in any case. It does what takes long for a big plan
outside the workflow's thread, which must not be held for two seconds.
"""

from __future__ import annotations

import json
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from plans import inquiry, render
    from plans.calls import EndedRun, EndRecord
    from plans.run import Run
    from workflows import policies


LARGE = 64 * 1024
"""Characters of a Run from which on nobody reads it in Temporal's UI."""


async def recorded(run: Run) -> dict[str, Any]:
    """Keep the record of a run that has ended; returns the summary."""
    if run.facts.keeps_summaries:
        try:
            return (await _record(run)).summary
        except ActivityError as error:
            run.note("warning", f"SUMMARY.md could not be written: {error.cause}", workflow.now())
    return render.summary_of(inquiry.view(run))


def carried(run: Run) -> RawValue:
    """The request with which the next run of the workflow goes on; a big Run in it is a text, see `read_request`."""
    text = run.model_dump_json(exclude_defaults=True)
    written = text if len(text) < LARGE else json.dumps(text, ensure_ascii=False)
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=f'{{"run":{written}}}'.encode()))


async def _record(run: Run) -> EndRecord:
    record: EndRecord = await workflow.execute_local_activity(
        "record_end",
        EndedRun(plan_id=run.plan.id or "", run=run.model_dump_json(exclude_defaults=True)),
        result_type=EndRecord,
        activity_id="record_end",
        summary="keep the record and SUMMARY.md",
        start_to_close_timeout=policies.SUMMARY.start_to_close,
        retry_policy=policies.SUMMARY.retry_policy,
    )
    return record

"""The end of a run of the workflow: what the next one goes on with or, when the plan has ended, its record.

The record is kept by the activity `record_end`; the summary in it is what the workflow returns, and the memo says where
the record is: clients find it there whatever the end was (completed, failed, cancelled). The activity is local:
it may well be done twice, and the plan ends with this workflow task in any case. It does what takes long for a big plan
outside the workflow's thread, which must not be held for long.
"""

from __future__ import annotations

import json
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import FailureError, is_cancelled_exception

from plans.activity_io import END_RECORD, EndRecord
from plans.log import LogKind
from plans.run import Run, text_of
from plans.views.summary import summary_of
from workflows import policies
from workflows.raw import of_json

LARGE = 64 * 1024
"""Characters of a Run from which on nobody reads it in Temporal's UI."""


async def recorded(run: Run) -> dict[str, Any]:
    """Keep the record of a run that has ended; returns the summary."""
    if run.facts.keeps_summaries:
        try:
            record = await _record(run)
            if record.claim is not None:  # none in histories of older versions, which so replay as they were
                workflow.upsert_memo({END_RECORD: record.claim})
            return record.summary
        except FailureError as error:  # of a local activity its own failure, in no ActivityError
            if is_cancelled_exception(error):
                raise
            run.note(
                LogKind.WARNING, f"SUMMARY.md could not be written: {error.cause or error.message}", workflow.now()
            )
    return summary_of(run).to_json()


def carried(run: Run) -> RawValue:
    """The request with which the next run of the workflow goes on; a big Run in it is a text, see `read_request`."""
    text = text_of(run)
    written = text if len(text) < LARGE else json.dumps(text, ensure_ascii=False)
    return of_json(f'{{"run":{written}}}')


async def _record(run: Run) -> EndRecord:
    record: EndRecord = await workflow.execute_local_activity(
        "record_end",
        of_json(text_of(run)),
        result_type=EndRecord,
        activity_id="record_end",
        summary="keep the record and SUMMARY.md",
        start_to_close_timeout=policies.SUMMARY.start_to_close,
        retry_policy=policies.SUMMARY.retry_policy,
    )
    return record

"""How a run of the workflow ends: with the record and summary of the plan, or with continue-as-new; and cancelled.

The activity `record_end` stores the record. The summary in it is the workflow's result, and the memo says where the
record is, so that clients can read it whether the plan completed, failed or was cancelled. The activity is local: it is
idempotent, and this is the plan's last workflow task in any case. Summarising and storing a big plan takes long, so it
happens in the activity: the workflow's thread must not be blocked.

A cancelled plan may still have to roll back or run its `finally` (`plans.flow.closing`). Temporal delivers one
cancellation per run of a workflow, and forgets it at continue-as-new: it is in the Run as well.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import FailureError, is_cancelled_exception

from plans.activity_io import END_RECORD, EndRecord
from plans.flow.closing import advance, cancel
from plans.log import LogKind
from plans.run import PlanStatus, Run, Status, text_of
from plans.views.summary import summary_of
from workflows import policies

if TYPE_CHECKING:
    from workflows.execution import Execution

LARGE = 64 * 1024
"""Characters. A longer Run is carried as one JSON string: faster to parse, and too long to read in Temporal's UI."""


def failure_of(run: Run) -> str:
    """Why the workflow fails although the plan ended in order; empty if it does not.

    Temporal pauses a schedule (pause on failure) when a workflow fails; a plan that a person interrupted has not.
    """
    if run.status is PlanStatus.FAILED:
        return f"the plan failed: {run.stopped}"
    if run.status is not PlanStatus.PARTIAL or not run.options.must_complete or run.interrupted:
        return ""
    counted = Counter(state.status for state in run.steps.values())
    missed = [f"{counted[status]} {status}" for status in (Status.FAILED, Status.SKIPPED, Status.BLOCKED)]
    return f"the plan did not complete: {', '.join(each for each in missed if not each.startswith('0 '))}"


async def recorded(run: Run) -> dict[str, Any]:
    """Store the record of a run that has ended. Returns the summary; a failure becomes a warning in the log."""
    if run.facts.keeps_summaries:
        try:
            record = await _record(run)
            if record.claim is not None:  # None in histories recorded before the memo held it: no command then
                workflow.upsert_memo({END_RECORD: record.claim})
            return record.summary
        except FailureError as error:  # a local activity's own failure, not wrapped in an ActivityError
            if is_cancelled_exception(error):
                raise
            run.note(
                LogKind.WARNING, f"SUMMARY.md could not be written: {error.cause or error.message}", workflow.now()
            )
    return summary_of(run).to_json()


def carried(run: Run) -> RawValue:
    """The argument of continue-as-new: a PlanRequest with the Run, a big one as a JSON string (`read_request`)."""
    text = text_of(run)
    written = text if len(text) < LARGE else json.dumps(text, ensure_ascii=False)
    return of_json(f'{{"run":{written}}}')


def of_json(text: str) -> RawValue:
    """JSON text as an argument of an activity or a workflow, sent without being parsed and serialised again."""
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text.encode()))


async def freed(execution: Execution, is_over: Callable[[], bool]) -> None:
    """Wait until the worker drops the workflow from its cache, which cancels all tasks, and free the steps' states.

    What remains of a workflow is in cycles. A garbage collection would have to look at everything else to find it, and
    a plan of 10,000 items leaves a Run behind each time it continues as new.
    """
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        if is_over():
            execution.run.steps.clear()
            execution.schedule.outline.nodes.clear()


async def goes_on(execution: Execution) -> bool:
    """Handle a cancellation. Returns whether something is still to be done that closes the plan."""
    run, now = execution.run, workflow.now
    if run.closing is None:
        await execution.cancel()
        return advance(execution.schedule, now(), cancelled=True)
    if not cancel(run, now()):
        abandon(execution, "cancelled again: the plan ends at once")
    return True


def abandon(execution: Execution, reason: str) -> None:
    """Cancel what closes the plan, and start no more of it."""
    run = execution.run
    if run.closing is not None:
        run.closing = run.closing.model_copy(update={"abandoned": True, "cancelled": True})
        execution.schedule.stop(reason, workflow.now())
        execution.cancel_running()


def ends_cancelled(run: Run, cancelled: bool) -> bool:
    """Whether the workflow ends as cancelled, as its plan does. An interrupted plan is cancelled, its workflow not."""
    asked = run.closing.cancelled if run.closing else cancelled
    return asked and run.status is PlanStatus.CANCELLED


async def _record(run: Run) -> EndRecord:
    record: EndRecord = await workflow.execute_local_activity(
        "record_end",
        of_json(text_of(run)),
        result_type=EndRecord,
        activity_id="record_end",
        summary="store the record and SUMMARY.md",
        start_to_close_timeout=policies.SUMMARY.start_to_close,
        retry_policy=policies.SUMMARY.retry_policy,
    )
    return record

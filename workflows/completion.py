"""How a run of the workflow ends: with the value, record and summary of the plan, with continue-as-new, or cancelled.

A plan's `outputs` are evaluated in an activity where values are long or stored elsewhere.

The activity `record_end` stores the record, and summarises the Run: in the workflow, every replay would do so again. A
Run of many steps would have to be parsed for that, and be in memory twice, so the workflow summarises that one. The
summary in the record is the workflow's result, and the memo says where the record is, so that clients can read it
whether the plan completed, failed or was cancelled. The activity is local: it is idempotent, and this is the plan's
last workflow task in any case.

A cancelled plan may still have to roll back or run its `finally` (`plans.execution.closing`). Temporal delivers one
cancellation per run of a workflow, and forgets it at continue-as-new: it is in the Run as well.

The workflow of a partial plan fails, since Temporal's lists, metrics and schedules know only whether a workflow failed;
one that a person interrupted completes, as it is to be resumed.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    FailureError,
    is_cancelled_exception,
)

from plansurvive.plans.activity_io import END_RECORD, EndRecord
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.execution import outputs
from plansurvive.plans.execution.closing import advance, cancel
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus, Result, Run, text_of
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.ended import ended
from plansurvive.plans.views.steps.row import status_word
from plansurvive.plans.views.summary import summary_of
from plansurvive.workflows import policies
from plansurvive.workflows.payloads import LARGE, of_json

if TYPE_CHECKING:
    from plansurvive.workflows.execution import Execution

PLAN_FAILED, PLAN_PARTIAL = "PLAN_FAILED", "PLAN_PARTIAL"
"""Types of the failure that a workflow ends with."""
REASON = 300
"""Characters of the first failed step and its error in that failure's message."""
MANY_STEPS = 1_000
"""The workflow summarises a Run of more steps; of 10,000, that saves 40 MB."""
VALUE = "value"
"""Key in the result of a plan for its value, if it is the child of a workflow that is no plan."""


def failure_of(run: Run, summary: dict[str, Any]) -> ApplicationError | None:
    """The failure that the workflow ends with although the plan ended in order; None if it does not fail.

    Temporal's lists, alerts and schedules (pause on failure) know only whether a workflow failed, so one does unless
    its plan completed; a plan that a person interrupted has not failed. A server repeats a failed workflow if whoever
    started it gave a retry policy: not a partial one, which would do again what is done. `plan resume` continues it.
    """
    if run.status is PlanStatus.FAILED and run.failed_as:
        return _failure(run.stopped, summary, run.failed_as)
    if run.status is PlanStatus.FAILED:
        return _failure(f"the plan failed: {run.stopped}", summary, PLAN_FAILED)
    if run.status is not PlanStatus.PARTIAL or run.interrupted:
        return None
    counted = Counter(status_word(state) for state in run.steps.values())
    words = ("failed", *DENIALS.values(), "skipped", "blocked")
    missed = [f"{counted[name]} {name}" for name in words if counted[name]]
    # Temporal's UI, alerts and schedules show this text alone.
    first = next((line(f"; {each['stepId']}: {each['error']}")[:REASON] for each in summary["failed"]), "")
    return _failure(f"the plan did not complete: {', '.join(missed)}{first}", summary, PLAN_PARTIAL)


def _failure(text: str, summary: dict[str, Any], code: str) -> ApplicationError:
    """The end of the workflow with the summary as detail. Benign: the worker has nothing to log about it."""
    benign = ApplicationErrorCategory.BENIGN
    return ApplicationError(text, summary, type=code, non_retryable=code == PLAN_PARTIAL, category=benign)


async def set_value(run: Run) -> None:
    """Give an ended run its value, if it has one: not after a failure or a cancellation.

    An output that cannot be evaluated becomes a warning in the log; the value is then a failure with BAD_OUTPUT.
    """
    is_child, request = run.parent is not None, None
    if run.batch is not None:  # it has values although an item has failed
        request = outputs.wanted_of_batch(run) if run.status is not PlanStatus.CANCELLED else None
    elif (run.plan.outputs or is_child) and run.status in _with_value(is_child):
        request = outputs.wanted(run, is_child=is_child)
    if request is None:
        return
    now, found = workflow.now(), dict[str, Any]()
    try:
        if outputs.is_small(request):
            found = {"value": outputs.evaluated(request, request.values, Budget())}
        else:
            found = await workflow.execute_activity(
                "plan_outputs",
                request,
                result_type=dict,
                task_queue=run.plan.queue,
                activity_id="plan_outputs",
                summary=f"outputs: {', '.join(request.outputs) or 'the values by step'}"[:200],
                start_to_close_timeout=policies.SNAPSHOT.start_to_close,
                retry_policy=policies.SNAPSHOT.retry_policy,
            )
    except (BadExpression, ActivityError) as error:
        if is_cancelled_exception(error):
            raise
        cause = error.cause if isinstance(error, ActivityError) else error
        text = str(getattr(cause, "message", None) or cause)[:4_000]
        run.value = Result(ok=False, error=text, code=outputs.BAD_OUTPUT, timestamp=now)
        run.note(LogKind.WARNING, text, now, code=outputs.BAD_OUTPUT)
        return
    large = LargeValue.model_validate(found["large"]) if found.get("large") else None
    run.value = Result(ok=True, value=None if large else found.get("value"), large=large, timestamp=now)


def with_value(run: Run, summary: dict[str, Any]) -> dict[str, Any]:
    """The summary of an ended plan, with its value if it is a child (`client.embedding.children`)."""
    if workflow.info().parent is None or run.value is None or not run.value.ok:
        return summary
    return {**summary, VALUE: {"value": run.value.value, "isLarge": run.value.large is not None}}


def _with_value(is_child: bool) -> tuple[PlanStatus, ...]:
    return (PlanStatus.COMPLETED,) if is_child else (PlanStatus.COMPLETED, PlanStatus.PARTIAL)


async def recorded(run: Run) -> dict[str, Any]:
    """Store the record of a run that has ended. Returns the summary; a failure becomes a warning in the log."""
    if run.facts.keeps_summaries:
        try:
            record = await _record(run)
            if record.claim is not None:  # else storing it has failed
                counts = record.summary.get("counts") or {}
                done = sum(counts.get(name, 0) for name in ("completed", "skipped"))
                workflow.upsert_memo({END_RECORD: record.claim, "done": done})
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
    end = ended(run) if len(run.steps) > MANY_STEPS else None
    sent = of_json(end.model_dump_json(exclude_defaults=True), stays=True) if end is not None else None
    record: EndRecord = await workflow.execute_local_activity(
        "record_end",
        # Both in any case: with fewer arguments than its function has, the SDK does not look at their types.
        args=[of_json(text_of(run), stays=True), sent],
        result_type=EndRecord,
        activity_id="record_end",
        summary="store the record and SUMMARY.md",
        start_to_close_timeout=policies.SUMMARY.start_to_close,
        retry_policy=policies.SUMMARY.retry_policy,
        local_retry_threshold=policies.LOCAL_WAIT,
    )
    return record

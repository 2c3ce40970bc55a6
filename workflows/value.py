"""The value of a plan at its end: evaluates its `outputs`, in an activity where values are long or stored elsewhere."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.plans.errors import BadExpression
from plansurvive.plans.execution import outputs
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus, Result, Run
from plansurvive.workflows import policies

VALUE = "value"
"""Key in the result of a plan for its value, if it is the child of a workflow that is no plan."""


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

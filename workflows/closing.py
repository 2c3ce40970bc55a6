"""Cancellation of a plan that rolls back or has a `finally`: what is still done before its workflow ends.

`plans.flow.closing` decides what closes a plan; PlanWorkflow does it in the loop that executes its steps. Temporal
delivers one cancellation per run of a workflow, and forgets it at continue-as-new: it is in the Run as well.
"""

from __future__ import annotations

from temporalio import workflow

from plans.flow.closing import advance, cancel
from plans.run import PlanStatus, Run
from workflows.execution import Execution


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

"""How a plan ended, as a value: the workflow's result, read from wherever it stands.

A completed workflow carries its summary as result, a failed one in the failure's details, a cancelled one is asked for
it. `ended_otherwise` makes one for a plan that was terminated from outside and cannot be asked.
"""

from __future__ import annotations

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from client.ids import plan_id
from plans.errors import InvalidPlan
from plans.model import Problem
from plans.run import PlanStatus
from plans.views.summary import Summary


def of_failure(error: WorkflowFailureError, plan: str) -> Summary | None:
    """The summary in a workflow's failure; None when the plan must be asked. Raises InvalidPlan if it never began."""
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == "INVALID_PLAN":
        details = cause.details[0] if cause.details and isinstance(cause.details[0], list) else []
        found = [Problem.model_validate(detail) for detail in details]
        raise InvalidPlan(found or [Problem(code="INVALID_PLAN", message=cause.message)]) from error
    if isinstance(cause, ApplicationError) and cause.details and isinstance(cause.details[0], dict):
        return Summary.read(cause.details[0])
    if isinstance(cause, CancelledError):
        return None
    return ended_otherwise(plan, cause)


def ended_otherwise(plan: str, cause: BaseException | None) -> Summary:
    """What there is to say of a plan that ended without a summary of its own."""
    if isinstance(cause, CancelledError):
        return Summary(plan_id=plan_id(plan), status=PlanStatus.CANCELLED, stopped="the plan was cancelled")
    if isinstance(cause, TerminatedError):
        return Summary(plan_id=plan_id(plan), status=PlanStatus.CANCELLED, stopped="terminated from outside")
    return Summary(plan_id=plan_id(plan), status=PlanStatus.FAILED, stopped=str(cause)[:500])

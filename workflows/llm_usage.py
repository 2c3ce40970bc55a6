"""What LLM requests cost: whether a plan may send one of its own, and what was spent."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.plans.errors import Unanswered
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.usage import OVERRUN_CODE, Permission, Usage
from plansurvive.workflows.permission import permitted


async def require_permission(schedule: Schedule) -> None:
    """Wait until the plan may send a request of its own. Raises Unanswered when it is refused.

    Near a limit, waits for requests of agents that are under way, and warns once. A child plan then asks its parent.
    """

    def permission() -> Permission:
        return schedule.rules.permission(schedule.run, own=True)

    run, said = schedule.run, permission()
    if said.verdict == "wait":
        await workflow.wait_condition(lambda: permission().verdict != "wait")
        said = permission()
    if said.verdict == "warn":
        note_once(run, said.reason)
    if said.verdict in ("ask", "stop"):
        run.note(LogKind.BUDGET, said.reason, workflow.now(), code=OVERRUN_CODE)
        raise Unanswered(said.refusal, OVERRUN_CODE)
    await permitted(run)


def note_once(run: Run, reason: str) -> None:
    """Note that requests will soon be refused; once in a run."""
    if not any(entry.kind is LogKind.BUDGET for entry in run.log):
        run.note(LogKind.BUDGET, reason, workflow.now())


def count(run: Run, usage: Usage, model: str, seconds: float, step_id: str = "") -> None:
    """Add a request that has ended to what the run has spent; `model`: empty if it gave no answer."""
    run.llm_seconds += seconds
    if usage.calls:
        run.ledger = run.ledger.plus(usage, model=model, step_id=step_id, seconds=seconds)


def failure_of(error: ActivityError) -> tuple[Unanswered, Usage]:
    """A failed request as Unanswered, and the usage it reported all the same."""
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Unanswered(f"the LLM request failed: {cause or error}"[:1_000], "LLM_UNAVAILABLE"), Usage()
    detail: dict[str, Any] = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    try:
        usage = Usage.model_validate(detail.get("usage") or {})
    except ValidationError:
        usage = Usage()
    return Unanswered(cause.message, cause.type or "LLM_UNAVAILABLE", text=str(detail.get("said") or "")), usage

"""What LLM requests cost."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.plans.errors import Unanswered
from plansurvive.plans.run import Run
from plansurvive.plans.usage import Usage


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

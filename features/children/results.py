"""How a child plan has ended, for its parent: what its result holds, and what becomes of it in the parent's step.

A child that completed gives its value. One that ended otherwise fails the step, with PLAN_PARTIAL, PLAN_FAILED,
PLAN_CANCELLED or PLAN_INTERRUPTED; the message names its first failed step with its code.

One code for all of a child, so that a `catch` means the child as a whole; the code of its first failure would change
with the order in which steps end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.features.children.reports import report_of
from plansurvive.features.hosts.model import left_behind
from plansurvive.plans.execution.outputs import BAD_OUTPUT
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.execution.tool_history import files_of_run
from plansurvive.plans.run import PlanStatus, Run, Status

KEY = "child"
"""Key in the result of a child plan for what its parent takes over."""
CODES: Mapping[str, str] = {
    PlanStatus.PARTIAL: "PLAN_PARTIAL", PlanStatus.FAILED: "PLAN_FAILED", PlanStatus.CANCELLED: "PLAN_CANCELLED",
}  # fmt: skip
INTERRUPTED = "PLAN_INTERRUPTED"


def result_of(run: Run) -> dict[str, Any]:
    """What an ended child plan returns to its parent."""
    value = run.value
    found: dict[str, Any] = {
        "status": run.status.value,
        "report": report_of(run, ReadinessIndex(run)).model_dump(mode="json"),
    }
    found |= {"spent": run.ledger.spent(run.llm_seconds).model_dump(mode="json")}
    if value is not None and value.ok:
        large = value.large.model_dump(mode="json") if value.large else None
        found |= {"large": large} if large else {"value": value.value}
    code, text = failure_of(run)
    return found | files_of_run(run) | left_behind(run.host) | ({"code": code, "error": text} if code else {})


def failure_of(run: Run) -> tuple[str, str]:
    """The code and the message of the step whose child plan this is; empty if it completed with a value."""
    if run.status is PlanStatus.COMPLETED:
        return ("", "") if run.value is None or run.value.ok else (BAD_OUTPUT, run.value.error or "")
    code = INTERRUPTED if run.interrupted and run.status is PlanStatus.CANCELLED else CODES[run.status]
    return code, f"plan '{run.plan.id}' ended as {run.status.value}{_why(run)}"


def _why(run: Run) -> str:
    for step in run.plan.steps:
        state = run.steps[step.id]
        if state.status is Status.FAILED and state.result is not None:
            return f": step '{step.id}' failed ({state.result.code}): {state.result.error}"
    denied = next((step.id for step in run.plan.steps if run.steps[step.id].is_denied), "")
    if denied:
        return f": step '{denied}' was {'not answered in time' if run.steps[denied].is_unanswered else 'denied'}"
    return f": {run.stopped}" if run.stopped else ""

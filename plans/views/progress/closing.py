"""What views say of a plan's end: its deadline; how far rollback and `finally` are, what became of each undo."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.model import Step, Undo
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.run import Run
from plansurvive.plans.run.undone import outcomes, undone
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.progress.events import result_view
from plansurvive.plans.views.progress.pending import iso

UNDO_WORDS = {"pending": "not undone yet", "running": "being undone", "completed": "undone", "failed": "undo failed",
              "skipped": "undo denied"}  # fmt: skip
"""What became of an undo, by the status of the step that does it."""


def closing_view(run: Run) -> dict[str, Any]:
    """How far the plan is in being closed (a ClosingView), under `closing`; before that, its `deadline`, if any."""
    closing, until = run.closing, run.must_end
    if closing is None:
        return {"deadline": iso(until)} if until else {}
    view: dict[str, Any] = {"phase": closing.phase, "ends": closing.ends, "cancelled": closing.cancelled}
    number = [became.status for _, became in outcomes(run)]
    undo = {status: number.count(status) for status in UNDO_WORDS if status in number}
    return {"closing": {**view, "undo": undo}}


def undo_view(run: Run, step: Step) -> dict[str, Any]:
    """A step's `undo` as written, with `status` and `result` once the plan rolls back."""
    became = undone(run, step.id)
    if became is None:
        return {}
    rule = step.undo or Undo(tool=PLAN)  # what the steps of its child plan say
    view = rule.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    result = {"result": result_view(became.result)} if became.result else {}
    return {"undo": {**view, "status": became.status, **result}}


def undo_text(run: Run, step: Step) -> str:
    """What became of a step's undo, in words; empty if the plan does not roll it back."""
    became = undone(run, step.id)
    if became is None:
        return ""
    result = became.result
    error = f": {line(result.error or result.code or '')}" if result is not None and not result.ok else ""
    return UNDO_WORDS[became.status] + error

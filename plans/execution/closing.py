"""Decides how a plan is closed once its steps have ended: roll back, then `finally` (DESIGN 2.8).

Rules
- A plan with `rollback: true` that would end `failed`, `partial` or `cancelled` undoes its completed steps
  that have an `undo`, one at a time, the one that completed last first. An undo that fails is recorded, and the
  others still run.
- Then the steps of the plan's `finally` run, however it ended. What closes a plan runs although the plan has stopped.
- An interrupted plan does neither: it can be resumed. Nor does one that never began, or waits for its workspace.
- A cancellation of a plan that is being closed lets that finish; another one ends it at once.
- A run that undoes an ended plan begins with its rollback. It is completed if all of that is done, partial otherwise.

After a failed undo the others run, as in sagas, one at a time, since effects of parallel steps may build on each other
unseen. Undos are steps of the run; a child workflow would need views and messages of its own.
"""

from __future__ import annotations

from datetime import datetime

from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.run.undone import to_undo
from plansurvive.plans.text.lists import number_of

ROLLS_BACK = frozenset({PlanStatus.FAILED, PlanStatus.PARTIAL, PlanStatus.CANCELLED})
"""The statuses of a plan that make it roll back."""
CANCELLED = "cancelled while it was being closed; that finishes first: cancel again to end the plan at once"


def advance(schedule: Schedule, now: datetime, *, cancelled: bool = False) -> bool:
    """Begin what closes the plan next. False if nothing is left: the plan can end. For a schedule that is idle."""
    run = schedule.run
    closing = run.closing or _first(schedule, now, cancelled=cancelled)
    if closing is None or closing.abandoned:
        return False
    if closing.phase == "rollback" and closing.begun < len(closing.order):
        schedule.close(closing.model_copy(update={"begun": closing.begun + 1}), now)
        return True
    if closing.phase == "finally" or not run.plan.finally_:
        return False
    run.note(LogKind.CLOSING, f"finally: {_steps(len(run.plan.finally_))}", now)
    schedule.close(closing.model_copy(update={"phase": "finally"}), now)
    return True


def cancel(run: Run, now: datetime) -> bool:
    """Take note of a cancellation of a plan that is being closed. False if it was cancelled before: end it at once."""
    closing = run.closing
    if closing is None or closing.cancelled or closing.of:
        return False
    run.closing = closing.model_copy(update={"cancelled": True})
    run.note(LogKind.CLOSING, CANCELLED, now)
    return True


def _first(schedule: Schedule, now: datetime, *, cancelled: bool) -> Closing | None:
    """The beginning of what closes the plan; None if nothing does."""
    run = schedule.run
    if run.started is None or run.is_held_up or (run.was_cut_short and not cancelled):
        return None
    ends = schedule.last_status(cancelled)
    order = to_undo(run) if run.plan.rollback and ends in ROLLS_BACK else []
    if not order and not run.plan.finally_:
        return None
    if order:
        run.note(LogKind.CLOSING, f"rolling back: {_steps(len(order))} to undo, the last completed first", now)
    return Closing(phase="rollback", ends=ends.value, order=order, cancelled=cancelled)


def _steps(count: int) -> str:
    return number_of(count, "step")

"""What views show of a step that a child plan works on: what that plan and those below it ask people."""

from __future__ import annotations

from plansurvive.plans.in_views import Below, InViews
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import StepState


def _below(_: str, __: Step, state: StepState) -> Below | None:
    """As far as the child plan has reported it."""
    report = state.child.report if state.child is not None else None
    if state.child is None or report is None or not (report.pending or report.more):
        return None
    return Below(state.child.plan_id, report.pending, report.more)


IN_VIEWS = InViews("children", below=_below)

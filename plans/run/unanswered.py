"""Whether a plan lacks nothing but decisions that did not come in time: its exit code says so, and so does its report.

A loop fails for want of them, and so does the step of a child plan: these are no failures of their own. What an agent
made of calls that were not answered is its own affair.
"""

from __future__ import annotations

from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.run.undone import outcomes
from plansurvive.plans.step_state import ITEMS_DENIED, Status


def lacks_answers_alone(run: Run) -> bool:
    """Whether nothing else kept an ended plan from completing."""
    if run.status is not PlanStatus.PARTIAL or run.stopped:
        return False
    if any(each.status != "completed" for _, each in outcomes(run)):
        return False
    lacks = False
    for name, state in run.steps.items():
        if state.status is Status.FAILED and _matters(run, name):
            # What a loop's items lack is said of them; of a child plan, only its report says it.
            is_loop = state.result is not None and state.result.code == ITEMS_DENIED
            is_child = state.child is not None and state.child.report is not None and state.child.report.lacks_answers
            if not (is_loop or is_child):
                return False
            lacks = True
        elif state.is_denied:
            if not state.is_unanswered:
                return False
            lacks = True
    return lacks


def _matters(run: Run, name: str) -> bool:
    """Whether a failed step failed by itself, and what is around it neither caught nor tolerated that."""
    if name not in run.outline:
        return True
    inside = run.outline.nodes[name].children
    around = run.outline.ancestors(name)
    return not any(run.steps[each].status is Status.FAILED for each in inside) and not any(
        run.steps[each.id].status is Status.COMPLETED for each in around
    )

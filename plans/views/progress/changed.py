"""Which steps of a plan the brief view lists for a client that has an earlier one: those that may differ since.

Whoever follows a plan of thousands of steps asks after each change; building, sending and reading all of them for the
one that changed would cost the worker and the client more than the change itself.
"""

from __future__ import annotations

from plansurvive.plans.model import Step
from plansurvive.plans.run import Run, Status


def is_enough(run: Run, since: int, version: int) -> bool:
    """Whether the steps that changed say everything to a client that has the plan as of event `since`.

    Not if the plan was edited, is being closed (an `undo` shows in two steps), or was set back to an earlier event.
    """
    return 0 < since <= run.seq and version == run.plan.version and run.closing is None


def may_differ(run: Run, since: int) -> list[Step]:
    """The plan's steps that may look different than at event `since`.

    Besides those that changed: those in which something moves that has no event, as tasks of an agent, a child plan or
    what is inside a block; those that await or awaited something; and those that are permanently blocked, since a
    blocked step becomes that without an event of its own.
    """
    return [step for step in run.plan.steps if _may_differ(run, step.id, since)]


def _may_differ(run: Run, step_id: str, since: int) -> bool:
    state = run.steps[step_id]
    if state.changes and state.changes[-1].seq > since:
        return True
    if state.status is Status.RUNNING or state.awaiting or state.permanently_blocked or step_id in run.opened:
        return True
    return state.status is Status.READY and bool(state.asks or state.recoveries)

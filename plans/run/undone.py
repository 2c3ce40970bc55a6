"""Which steps are to be undone, in which order, and what became of the undo of each (DESIGN 2.8).

The undo of STEP is the step `STEP.undo`, one call or a block: its status and result are those of the undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from plansurvive.plans.definition.scopes import FINALLY, UNDO
from plansurvive.plans.flow.ids import inner_id, is_inside
from plansurvive.plans.model import Step
from plansurvive.plans.run import ENDED, Run
from plansurvive.plans.step_state import DONE, Result, Status, StepState

UndoStatus = Literal["pending", "running", "completed", "failed", "skipped"]


class Undone(NamedTuple):
    """The outcome of a step's undo so far."""

    status: UndoStatus
    """pending: its turn has not come; skipped: a person denied it; failed: its effect may not be undone."""
    result: Result | None = None


def undo_of(step_id: str) -> str:
    """The id of the step that undoes a step."""
    return inner_id(step_id, UNDO)


def to_undo(run: Run) -> list[str]:
    """Ids of the steps to undo: completed, with an `undo` or a child plan that has some; the last completed first."""
    already = undone_steps(run)
    done = [
        node.id
        for node in run.outline.nodes.values()
        if node.kind != "each"  # its items are undone, each for itself
        and node.id not in already
        and not run.steps[node.id].closes
        and (
            run.steps[node.id].status is Status.COMPLETED
            if node.step.undo is not None
            else undone_child(node.step, run.steps[node.id]) is not None
        )
    ]
    # By the number of the change with which each ended; of one taken over without changes, 0.
    ends = {name: [change.seq for change in run.steps[name].changes if change.status in DONE] for name in done}
    return sorted(done, key=lambda name: ends[name][-1] if ends[name] else 0, reverse=True)


def undone_child(step: Step, state: StepState) -> str | None:
    """The id of the child plan whose own steps are to be undone when its step is; None if there is none.

    A step that says itself how it is undone is undone in that way alone. A child counts however it ended, as the steps
    of a block do: some of its steps have completed. One that was cut off has not reported what there is to undo.
    """
    child = state.child
    if step.undo is not None or child is None or not child.plan_id or state.status not in DONE:
        return None
    if child.report is None or child.report.undos or child.report.status not in ENDED:
        return child.plan_id
    return None


def undone(run: Run, step_id: str) -> Undone | None:
    """What became of a step's undo; None if it is not being undone."""
    closing = run.closing
    if closing is None:
        return None
    state = run.steps.get(undo_of(step_id))
    if state is not None and state.closes == UNDO:
        return _of(state)
    return Undone("pending") if step_id in closing.order[closing.begun :] else None


def undone_steps(run: Run) -> dict[str, None]:
    """Ids of the steps whose undo has completed: they count as not done when the plan is resumed."""
    names = run.closing.undone if run.closing is not None else []
    return {name: None for name in names if _of(run.steps[undo_of(name)]).status == "completed"}


def unclosed(run: Run) -> Run:
    """The run without what closed its plan."""
    if run.closing is None:
        return run
    steps = {name: state for name, state in run.steps.items() if not state.closes}
    opened = {name: each for name, each in run.opened.items() if name in steps}
    decisions = {name: each for name, each in run.decisions.items() if name in steps}
    changed = {"steps": steps, "opened": opened, "decisions": decisions, "closing": None}
    return run.model_copy(update=changed)


def is_of_edited(run: Run, step_id: str) -> bool:
    """Whether a step was edited, or is inside of what was, or is part of its undo, which may be the editor's."""
    if is_inside(step_id, run.edited):
        return True
    return bool(run.closing) and any(f"{step_id}.".startswith(f"{undo_of(name)}.") for name in run.edited)


def outcomes(run: Run) -> Iterator[tuple[str, Undone]]:
    """The steps that were undone or are to be, in that order, each with what became of it."""
    closing = run.closing
    for name in [*closing.before, *closing.order] if closing is not None else ():
        if (found := undone(run, name)) is not None:
            yield name, found


def shown_steps(run: Run) -> list[Step]:
    """The plan's steps, and those that close it as far as they have begun."""
    if run.closing is None:
        return run.plan.steps
    nodes = run.outline.nodes.values()
    return [*run.plan.steps, *(node.step for node in nodes if run.steps[node.id].closes and node.id != FINALLY)]


def _of(state: StepState) -> Undone:
    if state.is_denied:
        return Undone("skipped", state.result)
    if state.status is Status.FAILED or state.permanently_blocked:
        return Undone("failed", state.result)
    return Undone("completed", state.result) if state.status in DONE else Undone("running", state.result)

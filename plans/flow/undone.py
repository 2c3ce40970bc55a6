"""What became of a step's undo: one status and one result, whether it is one call or several steps (DESIGN 2.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from plans.flow.closing_steps import UNDO, undo_ids, undoes
from plans.model import Step
from plans.run import DONE, Result, Run, Status, StepState

UndoStatus = Literal["pending", "running", "completed", "failed", "skipped"]


class Undone(NamedTuple):
    """The outcome of a step's undo so far."""

    status: UndoStatus
    """pending: its turn has not come; skipped: a person denied it; failed: its effect may not be undone."""
    result: Result | None = None
    """That of its call; of several steps, the first that is not a success, else that of the last one."""


def undone(run: Run, step: Step) -> Undone | None:
    """What became of a step's undo; None if it is not being undone."""
    closing = run.closing
    if closing is None or step.undo is None:
        return None
    states = [run.steps[name] for name in undo_ids(step) if name in run.steps]
    if not states:
        return Undone("pending") if step.id in closing.order[closing.begun :] else None
    return _of(states)


def undone_steps(run: Run) -> dict[str, None]:
    """Ids of the steps whose undo has completed."""
    parts: dict[str, list[StepState]] = {}
    for name, state in run.steps.items():
        if state.closes == UNDO:
            parts.setdefault(undoes(name)[0], []).append(state)
    return {name: None for name, states in parts.items() if _of(states).status == "completed"}


def outcomes(run: Run, steps: Iterator[Step]) -> Iterator[tuple[Step, Undone]]:
    """The steps that were undone or are to be, each with what became of it."""
    if run.closing is None:
        return
    for step in steps:
        if (found := undone(run, step)) is not None:
            yield step, found


def _of(states: list[StepState]) -> Undone:
    bad = next((state for state in states if _is_bad(state)), None)
    result = (bad or states[-1]).result
    if bad is not None:
        return Undone("skipped" if bad.is_denied else "failed", result)
    if all(state.status in DONE for state in states):
        return Undone("completed", result)
    return Undone("running", result)


def _is_bad(state: StepState) -> bool:
    return state.status is Status.FAILED or state.never or state.is_denied

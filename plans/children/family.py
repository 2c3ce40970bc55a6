"""A plan's set: the workflows whose work is the plan's. All that says "the plan's" goes by it: files, undo, logs.

It has the plan, its earlier runs, the plans that undid it, and the agents and child plans of all their steps, in blocks
and loops as well, at any depth. This module says which workflows the steps of one run began; `features.files.family`
asks each of them in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.plans.in_views import Member
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.step_state import StepState


def members(run: Run) -> Iterator[Member]:
    """The agents and child plans that the steps of a run began, in the order of its steps; a step's first one first.

    Those of steps that an earlier run has done are its members, not this one's.
    """
    for name, node in run.outline.nodes.items():
        if (state := run.steps.get(name)) is not None:
            yield from members_of(run, node.step, state)


def members_of(run: Run, step: Step, state: StepState) -> Iterator[Member]:
    """Those of one step, one for each of its calls."""
    if run.started is None or state.began is None or is_of_earlier_run(run, state):
        return
    for call in range(1, state.calls + 1):
        if (found := _member(run, step, state, call)) is not None:
            yield found


def present(run: Run, step: Step, state: StepState) -> str | None:
    """The id of the agent or child plan of a step's last call; None if it has none. Of a plan that is resumed, the one
    that its new one continues.
    """
    found = _member(run, step, state, state.calls) if state.calls else None
    return found.id if found is not None else None


def is_of_earlier_run(run: Run, state: StepState) -> bool:
    """Whether a step was done before this run, which has taken it over, or has not begun in it yet."""
    return run.started is not None and state.began is not None and state.began < run.started


def _member(run: Run, step: Step, state: StepState, call: int) -> Member | None:
    """The agent or child plan of one call of a step."""
    if state.child is not None and state.child.plan_id:
        # Calls after the first have their number at the end of the plan's id (`plans.child_ids`).
        last = state.child.plan_id
        first = last.removesuffix(f"-{state.calls}") if state.calls > 1 else last
        name = last if call == state.calls else first if call == 1 else f"{first}-{call}"
        return Member(name, f"{step.id}/")
    return run.views.member(run.plan.id or "", step, state, call)

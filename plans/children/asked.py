"""What people are asked below a plan: by the agents and child plans of its steps (`plans.children.family`), and by
theirs, at any depth.

The one description of it: a child plan reports it to its parent, and views, commands, Temporal's UI and the search
attribute PlanPending are made of it. A plan knows it as far as it was reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plansurvive.plans.child_state import MAX_ASKED, Asked
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.run import Run, Status

LOOKED_AT = 200
"""Running steps that are looked at; a plan has at most 100."""


class AskedBelow(NamedTuple):
    """Decisions that a step's agent or child plan awaits, or a plan or agent further below."""

    step_id: str
    plan_id: str
    """The agent or child plan of the step."""
    asked: list[Asked]
    """With paths as this plan names them: `deploy/upload`, `deploy/review/call_1`."""
    more: int = 0
    """How many more there are."""


def asked_below(run: Run, running: Iterable[str]) -> Iterator[AskedBelow]:
    """What is awaited below these steps."""
    for name in running:
        state = run.steps[name]
        if state.status is not Status.RUNNING or not state.parts:  # what works below a step is one of its parts
            continue
        for found in run.views.below(run.plan.id or "", run.outline.step(name), state):
            asked = [each.model_copy(update={"path": _path(name, each.path)}) for each in found.asked]
            yield AskedBelow(name, found.plan_id, asked, found.more)


def below(standing: ReadinessIndex) -> list[AskedBelow]:
    """The same for the steps that run now."""
    return list(asked_below(standing.run, standing.in_progress(LOOKED_AT)))


def asked_of(standing: ReadinessIndex) -> tuple[list[Asked], int]:
    """The decisions that a run and all below it await, its own first, and how many more there are than are listed."""
    run, further = standing.run, below(standing)
    own = [
        Asked(plan_id=run.plan.id or "", step_id=name, path=name, kind=_kind(run, name)) for name in standing.awaiting
    ]
    found = [*own, *(each for item in further for each in item.asked)]
    return found[:MAX_ASKED], sum(item.more for item in further) + max(0, len(found) - MAX_ASKED)


def _path(step_id: str, path: str) -> str:
    return f"{step_id}/{path}"[:1_000]


def _kind(run: Run, name: str) -> str:
    state = run.steps[name]
    return next(iter(state.proposal or {}), state.awaiting or "approval")

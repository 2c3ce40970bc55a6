"""What the agents and child plans of a run's steps ask people, for the plan's own details and its next commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from plans.agents.order import agent_of_step
from plans.execution.readiness import ReadinessIndex
from plans.run import Run, Status

LOOKED_AT = 200
"""Running steps that are looked at."""


class AskedBelow(NamedTuple):
    """Decisions that a step's agent or child plan awaits."""

    step_id: str
    plan_id: str
    """The plan or agent to decide in."""
    names: list[str]
    """The steps there; of a plan, as this plan names them: `deploy/upload`."""
    more: int = 0
    """How many more there are."""
    is_plan: bool = False
    """A child plan; else an agent."""


def asked_below(run: Run, running: Iterable[str]) -> Iterator[AskedBelow]:
    """What is awaited below these steps, as far as it was reported."""
    for name in running:
        state = run.steps[name]
        if state.status is not Status.RUNNING:
            continue
        if state.agent_asks:
            yield AskedBelow(name, agent_of_step(run.plan.id or "", name, state.calls), state.agent_asks)
        report = state.child.report if state.child is not None else None
        if state.child is not None and report is not None and (report.pending or report.more):
            paths = [f"{name}/{each.path}" for each in report.pending]
            yield AskedBelow(name, state.child.plan_id, paths, report.more, is_plan=True)


def agent_asks(run: Run, step_id: str) -> dict[str, Any]:
    """What the agent of a step asks, under `agentAsks` (an AgentAsksView); empty if it asks nothing."""
    found = next((each for each in asked_below(run, [step_id]) if run.steps[step_id].agent_asks), None)
    return {"agentAsks": {"agentId": found.plan_id, "stepIds": found.names}} if found else {}


def of_schedule(schedule: ReadinessIndex) -> list[AskedBelow]:
    """The same for the steps of a schedule that run now; of very many, the first ones."""
    return list(asked_below(schedule.run, schedule.moving(LOOKED_AT)))

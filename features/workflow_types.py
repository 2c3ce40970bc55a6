"""Composition: the workflow types that a worker registers and histories are replayed with.

PlanWorkflow, AgentWorkflow and CodingAgentWorkflow are composed with the features of this worker; the others are the
features' own, and those of the core that know none. Built once, at import.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio import workflow

from plansurvive.features import FEATURES, sides
from plansurvive.features.agents import workflow as agent
from plansurvive.features.coding_agents import workflow as coding_agent
from plansurvive.plans.errors import PlanError
from plansurvive.plans.in_views import ViewSet
from plansurvive.workflows import plan
from plansurvive.workflows.admission import Admission
from plansurvive.workflows.feature import Features, handlers_of


def features_of(names: tuple[str, ...] = FEATURES) -> Features:
    """What a workflow class is composed with, for the features of these names."""
    return Features(
        names=names,
        rules=tuple(side.RULES for side in sides("rules", names)),
        languages={name: side.LANGUAGE for name in names for side in sides("language", (name,))},
        admission=next((side.ADMISSION for side in sides("in_admission", names)), Admission),
        views=ViewSet([side.IN_VIEWS for side in sides("in_views", names)]),
        in_run=tuple(side.IN_RUN for side in sides("in_workflow", names) if side.IN_RUN),
    )


FEATURES_OF_WORKER = features_of()
OfPlans, OfAgents = handlers_of(FEATURES_OF_WORKER.in_run), handlers_of(FEATURES_OF_WORKER.of_agents.in_run)
"""The handlers of the messages that features declare."""


@workflow.defn(name="PlanWorkflow", failure_exception_types=[PlanError, ValidationError])
class PlanWorkflow(OfPlans, plan.PlanWorkflow):  # type: ignore[misc, valid-type]
    """Runs one plan, with all features."""

    features = FEATURES_OF_WORKER

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """Draft, review, execute, summarize. Returns the summary."""
        return await super().run(*arguments)


@workflow.defn(name="AgentWorkflow", failure_exception_types=[PlanError, ValidationError])
class AgentWorkflow(OfAgents, agent.AgentWorkflow):  # type: ignore[misc, valid-type]
    """Runs one agent, with the features that agents have."""

    features = FEATURES_OF_WORKER.of_agents

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """Begin, work, end. Returns the summary."""
        return await super().run(*arguments)


@workflow.defn(name="CodingAgentWorkflow", failure_exception_types=[PlanError, ValidationError])
class CodingAgentWorkflow(OfAgents, coding_agent.CodingAgentWorkflow):  # type: ignore[misc, valid-type]
    """Runs one coding agent, with the features that agents have."""

    features = FEATURES_OF_WORKER.of_agents

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """Begin, work, end. Returns the summary."""
        return await super().run(*arguments)


WORKFLOWS: tuple[type, ...] = (
    *(PlanWorkflow, AgentWorkflow, CodingAgentWorkflow),
    *(each for side in sides("in_workflow") for each in side.WORKFLOWS),
)

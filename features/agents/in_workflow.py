"""Steps of a plan that are agents. The workflow of an agent itself is composed in `features.workflow_types`."""

from __future__ import annotations

from collections.abc import Sequence

from plansurvive.features.agents.steps import ChildAgents
from plansurvive.features.children.place import SharedPlace
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.in_steps import InSteps


class Agents(InRun):
    """The agents that work on steps of one plan: child workflows, as `children` has them."""

    feature = "agents"
    of_agents = False

    def in_steps(self) -> Sequence[InSteps]:
        """Steps of the tool `agent`, where plans have children."""
        place = self.execution.place.sharer
        return (ChildAgents(self.execution.schedule, place),) if isinstance(place, SharedPlace) else ()


IN_RUN, WORKFLOWS = Agents, ()

"""A plan as its review shows it: one query, from which view, tools, problems and what will ask are derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio.client import Client

from plansurvive.client.feature import read_run
from plansurvive.client.local_tools import known_tools
from plansurvive.client.requests.asking import asking_of
from plansurvive.client.rpc import ask
from plansurvive.plans.definition.checks.will_ask import Asking
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import Refused
from plansurvive.plans.model import Problem, Step, ToolSpec
from plansurvive.plans.run import ENDED, PlanStatus, Run
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.queries import view
from plansurvive.runtime.settings import Settings


@dataclass(frozen=True)
class Reviewed:
    """A plan at one moment."""

    run: Run
    view: PlanView
    tools: Mapping[str, ToolSpec]
    asking: list[Asking]

    @property
    def version(self) -> int:
        """The version that edits of this page are about."""
        return self.run.plan.version

    @property
    def is_open(self) -> bool:
        """Whether it can be edited: it is neither being written nor over."""
        return self.run.status not in ENDED and self.run.status is not PlanStatus.DRAFT

    @property
    def problems_by_step(self) -> dict[str, list[Problem]]:
        """What is wrong, by step; of the plan as a whole under ""."""
        found: dict[str, list[Problem]] = {}
        for problem in self.view.problems:
            found.setdefault(problem.step_id or "", []).append(problem)
        return found

    def has(self, name: str) -> bool:
        """Whether there is such a step, also inside a block or loop."""
        return self.run.step_of(name) is not None or any(path == name for path, _ in walk(self.run.plan))

    def step(self, name: str) -> Step:
        """A step of the plan, one inside a block (`resize.thumb`), or an instance (`resize[cat.png].thumb`).

        With the arguments that it would have now. Raises Refused UNKNOWN_STEP.
        """
        found = self.run.step_of(name) or dict(walk(self.run.plan)).get(name)
        if found is None:
            raise unknown_step(name, self.run)
        is_known = name in self.run.steps
        return found.model_copy(update={"id": name, "args": self.run.args_of(found)}) if is_known else found


async def reviewed(client: Client, plan: str, settings: Settings) -> Reviewed:
    """Load a plan. Raises as `client.runs.show`, and Refused NOT_A_PLAN for an agent, which has no steps to edit."""
    state = await ask(client, plan, "state")
    if "order" in state:
        raise Refused("an agent has no plan to edit; its page shows what it does", "NOT_A_PLAN")
    run = read_run(state)
    tools = known_tools(settings) | run.facts.tools
    asking = asking_of(run, tools, settings) if run.status not in ENDED and run.plan.steps else []
    return Reviewed(run, PlanView.read(view(run, [])), tools, asking)

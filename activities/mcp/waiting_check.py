"""The activity `check_plan` of a worker with tool servers: it waits for those that a plan needs and that still start.

Of a server that was listed before, the listing is known, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.mcp.server_tools import ServerTools
from plansurvive.plans.activity_io import CheckRequest, Facts
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.definition.validation import calls_of
from plansurvive.plans.model import Plan, Step

WAIT_SECONDS = 50.0
"""Less than an attempt of the check may take (`workflows.policies.CHECK`); the next one waits on."""


@dataclass(frozen=True)
class WaitingChecker:
    """A check (`PlanChecker.check_plan`) and the servers it needs to know."""

    check: Callable[[CheckRequest], Facts]
    servers: ServerTools
    seconds: float = WAIT_SECONDS

    @activity.defn(name="check_plan")
    async def check_plan(self, request: CheckRequest) -> Facts:
        """All problems of a plan on this worker, and the facts for its run.

        Raises ApplicationError MCP_UNAVAILABLE, to be retried, if a server whose tools are needed takes longer still.
        """
        if needed := self._needed(request):
            await self.servers.first_look(needed, self.seconds)
            if missing := self._needed(request):
                text = f"tool server {', '.join(missing)} has not answered since this worker started; asked again"
                raise ApplicationError(text, type="MCP_UNAVAILABLE")
        return await asyncio.to_thread(self.check, request)

    def _needed(self, request: CheckRequest) -> list[str]:
        """The servers to wait for; all that still start where no plan says which tools it needs, as for an agent."""
        starting = self.servers.unlisted
        named = _servers(request.plan) if starting and request.plan else set()
        return [name for name in starting if request.plan is None or name in named]


def _servers(plan: Plan) -> set[str]:
    """What the names of the tools of a plan begin with, as do those of servers: `server.tool`."""
    steps = [step for _, step in walk(plan)]
    tools = [call.tool for step in steps for call in calls_of(step)] + [name for step in steps for name in _given(step)]
    return {name.partition(".")[0] for name in tools if "." in name}


def _given(step: Step) -> list[str]:
    """The tools that a step gives to an agent, as far as they are named."""
    named = step.args.get("tools")
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []

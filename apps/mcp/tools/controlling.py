"""Controlling plans: plan_pause, plan_unpause, plan_cancel, plan_interrupt, plan_resume, plan_rerun.

A run that an agent continues or repeats waives nothing, whoever started the one before: no person has read what runs
again, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.views import PlanId, Shown, StepId, shown
from plansurvive.apps.mcp.tools.waiting import Wait, news
from plansurvive.client import runs
from plansurvive.client.ids import plan_id as id_of
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import Refused
from plansurvive.plans.model import Value


class Told(Value):
    """What a plan says to a message."""

    plan_id: str
    message: str


@dataclass(frozen=True)
class Controlling:
    """The tools that say whether and how a plan continues."""

    host: Host

    async def plan_pause(self, ctx: Request, plan_id: PlanId) -> Annotated[CallToolResult, Told]:
        """Pause a plan: running steps continue, no further step starts until plan_unpause."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected()
        return _told(plan_id, await runs.pause(here.client, plan_id, **caller.author))

    async def plan_unpause(self, ctx: Request, plan_id: PlanId) -> Annotated[CallToolResult, Told]:
        """Continue a paused plan."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected()
        return _told(plan_id, await runs.unpause(here.client, plan_id, **caller.author))

    async def plan_cancel(self, ctx: Request, plan_id: PlanId) -> Annotated[CallToolResult, Told]:
        """Cancel a plan for good: running steps clean up, nothing else starts. To stop it for a while: plan_pause."""
        self.host.caller(ctx).to_operate()
        here = await self.host.connected()
        await runs.cancel(here.client, plan_id)
        return _told(plan_id, "cancelling; running steps clean up first")

    async def plan_interrupt(self, ctx: Request, plan_id: PlanId) -> Annotated[CallToolResult, Told]:
        """End a plan so that plan_resume can continue it: running steps finish, results are kept."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected()
        await runs.interrupt(here.client, plan_id, **caller.author)
        return _told(plan_id, "stops when the running steps have finished; continue with plan_resume")

    async def plan_resume(self, ctx: Request, plan_id: PlanId, wait: Wait = 0) -> Annotated[CallToolResult, Shown]:
        """Continue a plan that has ended, in a new run with a new id: failed, blocked and unstarted steps run, the
        others keep their results. Nothing in the new run is waived."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected(starts=True)
        started = await runs.resume(here.client, plan_id, caller.name, waivers=False, verified=caller.verified)
        return await _after(here, started.plan_id, wait)

    async def plan_rerun(
        self,
        ctx: Request,
        plan_id: PlanId,
        start_at: Annotated[
            StepId | list[StepId] | None,
            Field(
                description="Run this step, or these, and all that depend on them; `each[*]` are all items of a loop."
            ),
        ] = None,
        only: Annotated[StepId | None, Field(description="Run this step alone.")] = None,
        args: Annotated[
            dict[str, Any] | None, Field(description="Other arguments of the one step, by name; the rest stay.")
        ] = None,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, Shown]:
        """Run steps of an ended plan again, in a new run with a new id. Nothing in the new run is waived."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected(starts=True)
        steps = [only] if only is not None else [start_at] if isinstance(start_at, str) else start_at or []
        if args and len(steps) != 1:
            raise Refused("`args` are of one step: rerun that one, or leave them out", "BAD_USAGE")
        step = next(iter(steps), "")
        changes = [Replacement(step_id=step, path=f"args.{name}", value=value) for name, value in (args or {}).items()]
        started = await runs.rerun(
            here.client, plan_id, start_at=start_at, only=only, changes=changes, by=caller.name, waivers=False,
            verified=caller.verified,
        )  # fmt: skip
        return await _after(here, started.plan_id, wait)


async def _after(here: Connected, plan: str, wait: float) -> CallToolResult:
    await news(here, plan, wait)
    return reply(*await shown(here, plan))


def _told(plan: str, sentence: str) -> CallToolResult:
    found = Told(plan_id=id_of(plan), message=sentence)
    return reply(found, f"{found.plan_id}: {sentence}")


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Controlling(host)
    add(server, tools.plan_pause, "Pause a plan", Kind.CONTROLS)
    add(server, tools.plan_unpause, "Continue a paused plan", Kind.CONTROLS)
    add(server, tools.plan_cancel, "Cancel a plan", Kind.ENDS)
    add(server, tools.plan_interrupt, "Stop a plan for a while", Kind.ENDS)
    add(server, tools.plan_resume, "Continue a plan that has ended", Kind.STARTS)
    add(server, tools.plan_rerun, "Run steps again", Kind.STARTS)

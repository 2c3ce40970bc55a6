"""Deciding by an agent: plan_approve, plan_deny, plan_withdraw, plan_answer, plan_event, plan_begin. Only with
`--may-approve`.

Whoever starts the server so lets its agents speak for them. Without, these tools do not exist; each also looks at its
caller, whose role may be less. A decision names the digest of the call that the agent read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Caller, Forbidden, Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.controlling import Told
from plansurvive.apps.mcp.tools.views import PlanId, StepId
from plansurvive.client import runs
from plansurvive.client.ids import plan_id as id_of
from plansurvive.client.runs import Choice

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="`digest` of plan_pending: what is decided about.")]
Comment = Annotated[str, Field(max_length=2_000, description="Reason, for the plan's log.")]
DECIDING = ("plan_approve", "plan_deny", "plan_withdraw", "plan_answer", "plan_event", "plan_begin")
"""The names of the tools that decide."""


@dataclass(frozen=True)
class Deciding:
    """The tools with which an agent decides for the person who lets it."""

    host: Host

    async def plan_approve(
        self, ctx: Request, plan_id: PlanId, step_id: StepId, digest: Digest, comment: Comment = ""
    ) -> Annotated[CallToolResult, Told]:
        """Approve the call of a step that awaits approval."""
        return await self._decide(ctx, plan_id, step_id, digest, comment, approved=True)

    async def plan_deny(
        self, ctx: Request, plan_id: PlanId, step_id: StepId, digest: Digest, comment: Comment = ""
    ) -> Annotated[CallToolResult, Told]:
        """Deny a step: it is skipped, and its dependents are blocked."""
        return await self._decide(ctx, plan_id, step_id, digest, comment, approved=False)

    async def plan_withdraw(
        self, ctx: Request, plan_id: PlanId, step_id: StepId, comment: Comment = ""
    ) -> Annotated[CallToolResult, Told]:
        """Take back a decision of this caller about a step that has not started."""
        caller = self._to_decide(ctx)
        here = await self.host.connected()
        return _told(plan_id, await runs.withdraw(here.client, plan_id, step_id, comment=comment, **caller.author))

    async def plan_answer(
        self,
        ctx: Request,
        plan_id: PlanId,
        step_id: StepId,
        value: Annotated[Any, Field(description="What the question asks for.")],
        digest: Digest,
    ) -> Annotated[CallToolResult, Told]:
        """Answer the question of a step."""
        caller = self._to_decide(ctx)
        here = await self.host.connected()
        return _told(plan_id, await runs.answer(here.client, plan_id, step_id, value, digest=digest, **caller.author))

    async def plan_event(
        self,
        ctx: Request,
        plan_id: PlanId,
        name: Annotated[str, Field(min_length=1, max_length=200)],
        data: Annotated[Any, Field(description="What the event says.")] = None,
    ) -> Annotated[CallToolResult, Told]:
        """Send an event to a plan, for the steps that wait for it."""
        caller = self._to_decide(ctx)
        here = await self.host.connected()
        return _told(plan_id, await runs.event(here.client, plan_id, name, data, **caller.author))

    async def plan_begin(self, ctx: Request, plan_id: PlanId) -> Annotated[CallToolResult, Told]:
        """End the review of a plan: it starts."""
        caller = self._to_decide(ctx).to_operate()
        here = await self.host.connected()
        return _told(plan_id, await runs.begin(here.client, plan_id, **caller.author))

    async def _decide(
        self, ctx: Request, plan: str, step: str, digest: str, comment: str, *, approved: bool
    ) -> CallToolResult:
        caller = self._to_decide(ctx)
        here = await self.host.connected()
        choice = Choice(step_id=step, digest=digest, comment=comment, **caller.author)
        send = runs.approve if approved else runs.deny
        return _told(plan, await send(here.client, plan, choice))

    def _to_decide(self, ctx: Request) -> Caller:
        """The caller, if the agent may decide. Raises Forbidden."""
        caller = self.host.caller(ctx)
        if not (self.host.may_approve and caller.may_decide):
            raise Forbidden("an agent cannot decide here; plan_pending says where a person does")
        return caller


def _told(plan: str, sentence: str) -> CallToolResult:
    return reply(Told(plan_id=id_of(plan), message=sentence), f"{id_of(plan)}: {sentence}")


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools, if agents may decide."""
    if not host.may_approve:
        return
    tools = Deciding(host)
    add(server, tools.plan_approve, "Approve a step", Kind.STARTS)
    add(server, tools.plan_deny, "Deny a step", Kind.CHANGES)
    add(server, tools.plan_withdraw, "Withdraw a decision", Kind.CHANGES)
    add(server, tools.plan_answer, "Answer a question", Kind.STARTS)
    add(server, tools.plan_event, "Send an event", Kind.STARTS)
    add(server, tools.plan_begin, "Begin a plan", Kind.STARTS)

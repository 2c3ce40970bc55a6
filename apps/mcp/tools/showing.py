"""Seeing plans: plan_list, plan_show, plan_pending."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.common.where import Where, where
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.views import MAX_STEPS, Awaited, PlanId, Shown, StepId, shown
from plansurvive.apps.mcp.tools.waiting import Wait, news
from plansurvive.client import runs
from plansurvive.client.missing import in_namespace
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.model import Value
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.safe_text import line

MAX_LISTED = 200
MAX_CHARACTERS = 100_000
"""Of the JSON of pending decisions in one answer."""


class PlanListed(Value):
    """One plan."""

    plan_id: str
    title: str
    status: PlanStatus
    waiting: list[str] | None = Field(default=None, description="Steps that await a person, if the server knows.")
    started_at: datetime
    ended_at: datetime | None = None


class ListShown(Value):
    """Plans, those that have not ended first."""

    plans: list[PlanListed]


class PendingShown(Value):
    """The decisions that plans await."""

    pending: list[Awaited] = Field(default_factory=list)
    more: int = Field(default=0, description="Decisions that are not listed.")
    silent: list[str] = Field(default_factory=list, description="Why some plans are missing.")
    decide: Where | None = Field(default=None, description="Where a person decides.")


@dataclass(frozen=True)
class Showing:
    """The tools that only look."""

    host: Host

    async def plan_list(
        self,
        ctx: Request,
        running: Annotated[bool, Field(description="Only plans that have not ended.")] = False,
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 20,
    ) -> Annotated[CallToolResult, ListShown]:
        """List plans, those that have not ended first."""
        del ctx
        here = await self.host.connected(worker=False)
        listed = [each async for each in runs.list_plans(here.client, running=running, limit=limit)]
        names = set(PlanListed.model_fields)
        rows = [PlanListed.model_validate(each.model_dump(include=names, by_alias=False)) for each in listed]
        text = (
            "\n".join(f"{each.plan_id} {each.status} {line(each.title)}" for each in rows)
            or f"There are no plans{in_namespace(here.client)}."
        )
        return reply(ListShown(plans=rows), text)

    async def plan_show(
        self,
        ctx: Request,
        plan_id: PlanId,
        step_id: Annotated[StepId | None, Field(description="Also show this step: arguments, result, files.")] = None,
        from_step: Annotated[int, Field(ge=0, description="First step of the list; see `next`.")] = 0,
        wait: Wait = 0,
        since: Annotated[
            int | None, Field(ge=0, description="With `wait`: until the plan has an event after this number (`seq`).")
        ] = None,
    ) -> Annotated[CallToolResult, Shown]:
        """Show where a plan stands: status, steps, what awaits a person, and what came of it once it has ended. With
        `wait`, wait for that first."""
        del ctx
        here = await self.host.connected()
        await news(here, plan_id, wait, since)
        return reply(*await shown(here, plan_id, from_step, step_id))

    async def plan_pending(
        self, ctx: Request, plan_id: Annotated[PlanId | None, Field(description="Only of this plan.")] = None
    ) -> Annotated[CallToolResult, PendingShown]:
        """List the decisions that plans await, with the whole call that each is about, and where a person decides."""
        del ctx
        here = await self.host.connected()
        silent: list[str] = []
        found = [Awaited.of(each) async for each in runs.pending(here.client, silent.append, plan=plan_id)]
        listed, size = list[Awaited](), 0
        for each in found[:MAX_STEPS]:
            size += len(each.model_dump_json())
            if listed and size > MAX_CHARACTERS:
                break
            listed.append(each)
        place = where(here, plan_id or listed[0].plan_id) if listed else await _of_review(here, plan_id)
        view = PendingShown(pending=listed, more=len(found) - len(listed), silent=silent[:20], decide=place)
        rows = [each.text for each in listed]
        rows = rows or ["The plan is in review." if place else "Nothing awaits a person."]
        return reply(view, "\n".join(rows + view.silent + ([place.text] if place else [])))


async def _of_review(here: Connected, plan_id: str | None) -> Where | None:
    """Where a person begins the plan, if it is in review."""
    found = (await shown(here, plan_id))[0] if plan_id else None
    return found.decide if found is not None and found.status is PlanStatus.REVIEW else None


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Showing(host)
    add(server, tools.plan_list, "List plans", Kind.READS)
    add(server, tools.plan_show, "Show a plan", Kind.READS)
    add(server, tools.plan_pending, "Decisions that plans await", Kind.READS)

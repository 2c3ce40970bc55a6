"""Following plans: plan_events, plan_logs. Both continue where the cursor of the answer before says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.cursors import LogCursor, Read, read_on
from plansurvive.apps.mcp.tools.views import PlanId, StepId
from plansurvive.apps.mcp.tools.waiting import Wait, news
from plansurvive.client import runs
from plansurvive.client.rpc import has_ended
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.progress.events import EventView
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore

MAX_EVENTS = 200
MAX_BYTES = 60_000
"""Bytes of JSON of events, or of output, in one answer."""


class EventsShown(Value):
    """Events of a plan."""

    events: list[dict[str, Any]] = Field(description="seq, time, stepId, status, and what else there is to say.")
    next: int = Field(description="`since` for the events after these.")
    has_ended: bool = Field(description="No event follows.")


class LogsShown(Value):
    """Output of commands."""

    output: list[Read]
    cursor: str = Field(description="For what follows; the same one again if nothing has been written.")
    has_ended: bool = Field(description="The plan has ended, and this is all.")


@dataclass(frozen=True)
class Following:
    """The tools that tell what happens."""

    host: Host

    async def plan_events(
        self,
        ctx: Request,
        plan_id: PlanId,
        since: Annotated[int, Field(ge=0, description="Only events after this number.")] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = 50,
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, EventsShown]:
        """Return the events of a plan after a number, oldest first: what began, ended, failed, awaits a person. With
        `wait`, wait for the next one."""
        del ctx
        here = await self.host.connected()
        await news(here, plan_id, wait, since)
        over = await has_ended(here.client, plan_id)
        found = await runs.events(here.client, plan_id, since, limit)
        kept, size = list[dict[str, Any]](), 0
        for each in found:
            data = each.to_json()
            size += len(json.dumps(data, ensure_ascii=False))
            if kept and size > MAX_BYTES:
                break
            kept.append(data)
        shown = EventsShown(
            events=kept, next=found[len(kept) - 1].seq if kept else since, has_ended=over and len(kept) < limit
            and len(kept) == len(found),
        )  # fmt: skip
        rows = [_row(each) for each in found[: len(kept)]] or ["No further events."]
        return reply(shown, "\n".join([*rows, f"next: since {shown.next}"]))

    async def plan_logs(
        self,
        ctx: Request,
        plan_id: PlanId,
        step_id: Annotated[StepId | None, Field(description="Only of this step.")] = None,
        cursor: Annotated[str, Field(max_length=4_000, description="From the answer before; none: all.")] = "",
        wait: Wait = 0,
    ) -> Annotated[CallToolResult, LogsShown]:
        """Return what the commands of a plan wrote, attempt by attempt, from a cursor on."""
        del ctx
        here = await self.host.connected()
        at = LogCursor.parsed(cursor)
        await news(here, plan_id, wait if cursor else 0)
        store = ValueStore(storage(here.settings))
        found, over = await read_on(here.client, store, plan_id, step_id or "", at, MAX_BYTES)
        shown = LogsShown(output=found, cursor=at.text, has_ended=over)
        rows = [f"{line(each.step)} #{each.attempt} {each.stream}:\n{each.text}" for each in found]
        return reply(shown, "\n".join(rows) or "Nothing further was written.")


def _row(event: EventView) -> str:
    said = "; ".join(each.text for each in event.logs or ())
    failed = f" {event.result.code}: {event.result.error}" if event.result and not event.result.ok else ""
    awaits = f" awaits {event.awaiting}" if event.awaiting else ""
    return line(f"{event.seq} {event.step_id or 'plan'} {event.status}{awaits}{failed[:500]} {said[:500]}".rstrip())


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Following(host)
    add(server, tools.plan_events, "Events of a plan", Kind.READS)
    add(server, tools.plan_logs, "Output of commands", Kind.READS)

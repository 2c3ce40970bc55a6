"""The command `plan list`. It reads the visibility index of the server and imports only what that needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from client.cli import output, session
from client.cli.options import AsJson
from client.cli.session import Connected
from client.listing import Listed, list_plans
from plans.views.safe_text import line

_STYLES = {"completed": "green", "failed": "red", "partial": "yellow", "cancelled": "yellow", "running": "cyan"}


def list_(
    running: Annotated[bool, typer.Option("--running", help="Only plans that have not ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most this many.")] = 20,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar="NAME", help="Only the runs of this schedule.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List plans, newest first."""

    async def collect(here: Connected) -> list[Listed]:
        return [each async for each in list_plans(here.client, running=running, limit=limit, schedule=schedule)]

    found = session.run(collect, worker=False)
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif found:
        output.out().print(plans_table(found))
    elif schedule is not None:
        output.say(f"No runs of schedule {line(schedule)}. What it will do: plan schedule show {line(schedule)}")
    else:
        output.say("No plan is running." if running else "No plans yet. Start one: plan run FILE")


def plans_table(found: list[Listed]) -> Table:
    """A table of plans; a schedule's view holds one too."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("PLAN", "STATUS", "STEPS", "STARTED", "TOOK"):
        table.add_column(name, no_wrap=True, overflow="fold" if name == "PLAN" else "ellipsis")
    table.add_column("TITLE", no_wrap=True, overflow="ellipsis")
    now = datetime.now(UTC)
    for each in found:
        decisions = f" ({len(each.waiting)} to approve)" if each.waiting else ""
        status = Text(each.status.value + decisions, style=_STYLES.get(each.status.value, ""))
        took = output.seconds(((each.ended_at or now) - each.started_at).total_seconds())
        clock = each.started_at.astimezone().strftime("%m-%d %H:%M")
        steps = str(each.steps) if each.steps else ""
        table.add_row(Text(each.plan_id), status, steps, clock, took, Text(line(each.title)))
    return table

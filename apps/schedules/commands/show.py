"""`plan schedule list` and `show`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from plansurvive.apps.schedules.spec import zone_of
from plansurvive.apps.schedules.views import ListedSchedule, ScheduleView, list_schedules, show_schedule
from plansurvive.apps.schedules.words import clock
from plansurvive.client.cli.list_plans import how_they_stand, show_plans
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line

if TYPE_CHECKING:
    from plansurvive.client.overview.standing import Standing

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]


def list_(as_json: AsJson = False) -> None:
    """List schedules."""

    async def collect(here: Connected) -> list[ListedSchedule]:
        return [each async for each in list_schedules(here.client, here.settings)]

    found = sorted(session.run(collect, worker=False), key=lambda each: each.name)
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif found:
        output.out().print(_table(found))
    else:
        output.say('No schedules yet. Create one: plan schedule create NAME FILE --cron "0 7 * * *"')


def show(name: Name, as_json: AsJson = False) -> None:
    """Show a schedule: its rules, its next times, its last runs."""

    async def collect(here: Connected) -> tuple[ScheduleView, Mapping[str, Standing]]:
        found = await show_schedule(here.client, name, here.settings)
        return found, {} if as_json else await how_they_stand(here, found.runs)

    found, known = session.run(collect, worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    output.show("\n".join([*_head(found), *next_rows(found)]))
    if found.runs:
        output.show("runs")
        show_plans(found.runs, known)
    else:
        output.show("runs       none yet")


def next_rows(found: ScheduleView) -> list[str]:
    """The next times of a schedule in its time zone, one per row."""
    if found.paused:
        return [f"paused     {line(found.note) or 'no reason given'}"]
    times = [_clock(each, found.timezone) for each in found.next_times]
    return [f"{'next' if not number else '':11}{text}" for number, text in enumerate(times)] or ["next       never"]


def _head(found: ScheduleView) -> list[str]:
    """The rows about a schedule that are not times to come."""
    bounds = [
        f"from {_clock(found.start, found.timezone)}" if found.start else "",
        f"until {_clock(found.end, found.timezone)}" if found.end else "",
        f"{found.remaining} more runs" if found.remaining is not None else "",
        f"up to {found.jitter} later" if found.jitter else "",
    ]
    counts = [f"{found.started} started", f"{found.missed} missed", f"{found.skipped} skipped"]
    count = len(found.plan.get("steps", []))
    rows = {
        "schedule": line(found.name) + (f": {line(found.title)}" if found.title else ""),
        "when": "; ".join([*found.when, *filter(None, bounds)]) + f", {line(found.timezone)}",
        "overlap": found.overlap + (", pauses when a run does not complete" if found.pause_on_failure else ""),
        "catch-up": f"what is at most {found.catchup} late is still started",
        "plan": number_of(count, "step") + (f", from {line(found.source)}" if found.source else ""),
        "workspace": line(found.workspace or "the worker's own"),
        "inputs": ", ".join(f"{line(key)}={line(output.compact(value))}" for key, value in found.inputs.items()),
        "approvals": "given in advance (--yes)" if found.approve_all else "",
        "signature": _signature(found),
        "note": line(found.note) if not found.paused else "",
        "created": _clock(found.created_at, found.timezone) + (f" by {line(found.by)}" if found.by else ""),
        "so far": ", ".join(counts),
    }
    return [f"{name:11}{text}" for name, text in rows.items() if text]


def _table(found: list[ListedSchedule]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    is_signed = any(each.signature for each in found)
    for name in ("SCHEDULE", "WHEN", "NEXT", *(["SIGNATURE"] if is_signed else []), "TITLE"):
        table.add_column(name, no_wrap=name != "WHEN", overflow="ellipsis" if name == "TITLE" else "fold")
    for each in found:
        if each.paused:
            upcoming = Text("paused", style="yellow")
        else:
            upcoming = Text(_clock(each.next_time, each.timezone) if each.next_time else "never")
        table.add_row(
            Text(each.name), Text(f"{'; '.join(each.when)}, {line(each.timezone)}"), upcoming,
            *([_signature(each).partition(";")[0]] if is_signed else []), line(each.title),
        )  # fmt: skip
    return table


def _signature(found: ListedSchedule) -> str:
    return found.signature.text(datetime.now(UTC)).replace("NAME", line(found.name)) if found.signature else ""


def _clock(time: datetime, zone: str) -> str:
    try:
        return clock(time, zone_of(zone))
    except PlanError:  # one that the server knows and this machine does not
        return clock(time, zone_of("UTC"))

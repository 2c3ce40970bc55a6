"""The command `plan list`: the server's index, and of open plans what they await since when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.more_options import NONE, Given, with_more
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.feature import views_of_features
from plansurvive.client.listing import Listed, list_plans, with_undos
from plansurvive.client.missing import in_namespace
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.text.spans import left
from plansurvive.runtime.sides import sides

if TYPE_CHECKING:
    from plansurvive.client.overview.standing import (
        Standing,  # reads what a run is; a list without open plans does not need it
    )

_COLUMNS = ("PLAN", "STATUS", "DONE", "STARTED", "TOOK", "UNDONE", "DEADLINE", "AWAITS", "HOST", "TITLE")
SHORTEST = 10
"""Characters that a title must have room for to be shown; what is awaited gets at least twice as many."""
_STYLES = {
    "rolling back": "yellow",
    "completed": "green",
    "failed": "bold red",
    "partial": "bold red",
    "cancelled": "yellow",
    "running": "cyan",
}
_MARKS = {"failed": "✗", "partial": "!"}
"""Plans that need a look stand out without colours too."""
_WORDS = {"approval": "approval of", "answer": "an answer to", "event": "an event for"}
_BY_ITSELF = {PlanStatus.REVIEW: "begin", PlanStatus.PAUSED: "unpause"}
"""What a plan awaits by its status alone."""


@with_more("list")
def list_(
    running: Annotated[bool, typer.Option("--running", help="Only plans that have not ended.")] = False,
    awaiting: Annotated[bool, typer.Option("--awaiting", help="Only plans that await a person.")] = False,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Only plans with this status; may be given more than once."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only plans started since: 2h, 3d, or 2027-03-28.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most this many.")] = 20,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar="NAME", help="Only the runs of this schedule.")
    ] = None,
    as_json: AsJson = False,
    more: Given = NONE,
) -> None:
    """List plans, those that have not ended first."""
    statuses, begin = _statuses(status or []), time_of(since)
    kept = [side.kept(more) for side in sides("filters")] if more else []

    def fits(each: Listed) -> bool:
        is_new = begin is None or each.started_at >= begin
        of_status = not statuses or each.status in statuses
        return is_new and of_status and schedule in (None, each.schedule) and all(keeps(each) for keeps in kept)

    async def collect(here: Connected) -> tuple[list[Listed], Mapping[str, Standing], str]:
        if awaiting:
            plans = list_plans(here.client, running=True, awaiting=True)
            found = [each async for each in plans if fits(each)]
        else:
            plans = list_plans(here.client, running=running, limit=limit, schedule=schedule, statuses=statuses,
                               since=begin, kept=kept)  # fmt: skip
            found = await with_undos(here.client, [each async for each in plans])
        known = await how_they_stand(here, found)
        if awaiting:
            found = [each for each in found if each.status in _BY_ITSELF or known[each.plan_id].asks][:limit]
        return found, known, in_namespace(here.client)

    found, known, place = session.run(collect, worker=False)
    if as_json:
        output.show_json([{**each.model_dump(mode="json"), **_json(known.get(each.plan_id))} for each in found])
    elif found:
        show_plans(found, known)
    else:
        output.say(_nothing(running, awaiting, statuses, since, schedule, more, place))


def show_plans(found: list[Listed], known: Mapping[str, Standing]) -> None:
    """Print a table of plans, and what a person may do about the first that waits. `known`: how they stand, by id."""
    console = output.out()
    console.print(plans_table(found, known, console.width))
    for each in _next(found, known):
        output.out().print(each, soft_wrap=True)


def plans_table(
    found: list[Listed], known: Mapping[str, Standing] | None = None, width: int = output.PIPE_WIDTH
) -> Table:
    """A table of plans. `known`: how they stand, by plan id.

    `width` in columns: in a narrow terminal the title is cut, then left out, then the times; what a plan awaits is cut
    next, and an id continues on the next line. STATUS, DONE, UNDONE and DEADLINE are always whole.
    """
    now = datetime.now(UTC)
    columns: dict[str, list[Text]] = {name: [] for name in _COLUMNS}
    for each in found:
        standing = (known or {}).get(each.plan_id)
        until = standing.deadline if standing else None
        columns["PLAN"].append(Text(each.plan_id))
        word = PHASES.get(standing.phase if standing else "", each.status.value)
        columns["STATUS"].append(Text(f"{_MARKS.get(word, ' ')} {word}", style=_STYLES.get(word, "")))
        columns["DONE"].append(Text(_done(each, standing)))
        columns["STARTED"].append(Text(each.started_at.astimezone().strftime("%m-%d %H:%M")))
        columns["TOOK"].append(Text(seconds(((each.ended_at or now) - each.started_at).total_seconds())))
        columns["UNDONE"].append(Text(_undone(each), "yellow"))
        columns["DEADLINE"].append(Text(left(until, now) if until else ""))
        columns["AWAITS"].append(Text(awaited(each, standing, now), "yellow"))
        columns["HOST"].append(Text(line(each.host or "")))
        columns["TITLE"].append(Text(line(each.title)))
    for name in ("UNDONE", "DEADLINE", "AWAITS", "HOST"):
        if not any(columns[name]):
            del columns[name]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    widths = _widths(columns, width)
    for name, room in widths.items():
        table.add_column(name, no_wrap=True, overflow="fold" if name == "PLAN" else "ellipsis")
        for cell in columns[name] if name in ("TITLE", "AWAITS") else []:
            cell.plain = safe(cell.plain)  # as it is shown, where a control character is longer
            if name == "AWAITS" and cell.cell_len > room:
                cell.plain = _cut(cell.plain, room)
            cell.truncate(room, overflow="ellipsis")
    for cells in zip(*(columns[name] for name in widths), strict=True):
        table.add_row(*cells)
    return table


def _cut(awaited: str, room: int) -> str:
    """What a plan awaits in less room: without since when, which would be another time if it were cut.

    The number of what else it awaits stays whole: the name of the step is cut before it.
    """
    text = awaited.rpartition(", ")[0] or awaited
    found = re.search(r" and \d+ more$", text)
    if found is None or cell_len(text) <= room or room <= cell_len(found[0]) + SHORTEST:
        return text
    name = Text(text[: found.start()])
    name.truncate(room - cell_len(found[0]), overflow="ellipsis")
    return name.plain + found[0]


def _widths(columns: Mapping[str, list[Text]], width: int) -> dict[str, int]:
    """The columns that there is room for, and the width of each."""
    widths = {name: max(cell_len(safe(str(cell))) for cell in (name, *cells)) for name, cells in columns.items()}
    title = widths["TITLE"]
    widths["TITLE"] -= _excess(widths, width)
    if widths["TITLE"] < min(SHORTEST, title):
        del widths["TITLE"]
    for name in ("STARTED", "TOOK", "HOST"):
        if name in widths and _excess(widths, width):
            del widths[name]
    if "AWAITS" in widths:
        widths["AWAITS"] = max(widths["AWAITS"] - _excess(widths, width), min(2 * SHORTEST, widths["AWAITS"]))
    return widths


def _excess(widths: Mapping[str, int], width: int) -> int:
    """By how much the columns, with two spaces after each, are wider than the terminal; 0 if they fit."""
    return max(sum(widths.values()) + 2 * len(widths) - width, 0)


def awaited(each: Listed, standing: Standing | None, now: datetime) -> str:
    """What a plan awaits, and since when: `approval of deploy and 2 more, 4:05`."""
    if standing is None or not each.is_open:
        return ""
    if not standing.is_served:
        from plansurvive.plans.views.next_actions import USUAL_QUEUE  # a list without open plans loads no views

        return "a worker" if each.queue == USUAL_QUEUE else f"a worker of queue '{line(each.queue)}'"
    if not standing.asks and standing.held_up:
        return line(standing.held_up.removeprefix("waits for "))
    if not standing.asks:
        return _BY_ITSELF.get(each.status, "")
    first, more = standing.asks[0], len(standing.asks) - 1
    words = _WORDS | {kind: each.awaited for kind, each in views_of_features().proposals.items()}
    text = f"{words.get(first.kind, 'decision on')} {line(first.step_id)}{f' and {more} more' if more else ''}"
    return text + (f", {seconds((now - standing.since).total_seconds())}" if standing.since else "")


def _undone(each: Listed) -> str:
    """When a plan was undone: `11-29 12:03`; `partly 11-29 12:03` if something of it is left."""
    if each.undo is None:
        return ""
    time = each.undo.at.astimezone().strftime("%m-%d %H:%M")
    return f"partly {time}" if each.undo.left or each.undo.step else time


def _done(each: Listed, standing: Standing | None) -> str:
    """Steps that are done, of all: `3/5`; `-/5` where that is not known."""
    done = standing.done if standing else each.steps if each.status is PlanStatus.COMPLETED else each.done
    total = standing.total if standing and standing.total is not None else each.steps
    return "" if total is None else f"{'-' if done is None else done}/{total}"


def _next(found: list[Listed], known: Mapping[str, Standing]) -> Iterator[Text]:
    """What a person may do about the first plan that waits for one."""
    waits = (known[each.plan_id] for each in found if each.plan_id in known and each.is_open)
    first = next((each for each in waits if each.next and (each.asks or not each.is_served)), None)
    for command, sentence in first.next[:1] if first else []:
        head = f"Next: {command}"
        rows = Text("\n".join(row.rstrip() for row in output.wrapped(f"{head}  ", sentence)))
        rows.stylize("dim", 0, len("Next: "))
        rows.stylize("dim", len(head))
        yield rows


async def how_they_stand(here: Connected, found: list[Listed]) -> Mapping[str, Standing]:
    """How the open ones stand; empty if there are none."""
    if not any(each.is_open for each in found):
        return {}
    from plansurvive.client.overview.standing import standings

    return await standings(here.client, found)


def _json(standing: Standing | None) -> dict[str, Any]:
    if standing is None:
        return {}
    shown = standing.model_dump(mode="json", include={"done", "total", "asks", "is_served", "held_up"})
    steps = [{"command": command, "sentence": sentence} for command, sentence in standing.next]
    times = {"since": _iso(standing.since), "deadline": _iso(standing.deadline)}
    renamed = {"isServed": shown.pop("is_served", True), "heldUp": shown.pop("held_up", "")}
    return {**shown, **renamed, "next": steps} | times


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _statuses(names: list[str]) -> list[PlanStatus]:
    """The statuses that were named. Raises PlanError."""
    named = [part.strip() for name in names for part in name.split(",") if part.strip()]
    for name in named:
        if name not in list(PlanStatus):
            known = ", ".join(each.value for each in PlanStatus)
            text = f"--status {name!r} is not a status of a plan; choose from: {known}"
            raise PlanError(text, "BAD_USAGE")
    return [PlanStatus(name) for name in named]


def time_of(text: str | None) -> datetime | None:
    """The time of `--since`: so long ago, or a date, or a time. Raises PlanError."""
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
    if text[:-1].isascii() and text[:-1].isdigit() and len(text) < 9 and text[-1] in units:
        return datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * units[text[-1]])
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PlanError(
            f"--since {text!r} is not a time; write 90m, 2h, 3d, 2027-03-28 or 2027-03-28T07:00", "BAD_USAGE"
        ) from None


def _nothing(
    running: bool,
    awaiting: bool,
    statuses: list[PlanStatus],
    since: str | None,
    schedule: str | None,
    more: Given,
    place: str,
) -> str:
    """What an empty list means: which filters were used, and what to do."""
    if schedule is not None and not (running or awaiting or statuses or since or more):
        return f"No runs of schedule {line(schedule)}. What it will do: plan schedule show {line(schedule)}"
    parts = ["is running"] if running else []
    parts += ["awaits a person"] if awaiting else []
    parts += [f"has the status {' or '.join(each.value for each in statuses)}"] if statuses else []
    parts += [f"was started since {line(since)}"] if since else []
    parts += [f"was started by schedule {line(schedule)}"] if schedule else []
    parts += [f"fits --{name.replace('_', '-')}" for name in more]
    if parts:
        return f"No plan{place} {' and '.join(parts)}. All plans: plan list"
    setting = " (TEMPORAL_NAMESPACE)" if place else ""
    return f"No plans{place}{setting} yet. Start one: plan run FILE"

"""Shows what a plan would do if it were started now. Connects to a server that runs, and starts none."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from plansurvive.client.cli.terminal import environment, output, session, signals
from plansurvive.client.decide.shown import coloured
from plansurvive.client.requests.plan_request import Request
from plansurvive.features.forecast import words
from plansurvive.features.forecast.forecast import forecast
from plansurvive.features.forecast.model import Forecast, ForeseenStep
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.connect import find

MAX_STEPS = 200
"""Steps that are listed; `--json` has all."""
MAX_ROWS = 40
"""Rows of a file's diff that are shown; `--json` has all."""


def show(request: Request, *, as_json: bool) -> None:
    """Show the forecast of a checked plan."""
    if request.warnings or request.unknown_tools:
        output.show_problems([*request.warnings, *request.unknown_tools], request.file.name)
    found = signals.run(_found(request))
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    for row in _rows(found):
        output.out().print(row, soft_wrap=True)


async def _found(request: Request) -> Forecast:
    settings = environment.settings()
    try:
        connection = await find(settings)
    except PlanError as error:
        output.say(f"{error.message}; earlier runs are not looked at.")
        connection = None
    return await forecast(request, settings, connection.client if connection else None, by=session.who())


def _rows(found: Forecast) -> Iterator[Text]:
    yield Text(f"{line(found.title)}: nothing was started. In {line(found.workspace)} it would now:", "bold")
    for step in found.steps[:MAX_STEPS]:
        yield from _step_rows(step)
    if (more := max(0, len(found.steps) - MAX_STEPS) + found.more) > 0:
        yield Text(f"  ... and {more} more steps")
    yield Text("")
    if head := words.undoing(found):
        yield Text(head)
        for undo in found.undos[:MAX_STEPS]:
            yield Text(f"  {line(undo.step_id)}  {line(undo.tool or 'steps')}")
            if undo.asks:
                yield Text(f"      asks: {line(undo.asks)}", "yellow")
        yield Text("")
    yield Text(words.counted(found))
    if asks := words.asking(found):
        yield Text(asks, "yellow")
    yield Text(words.needed(found))
    for note in found.notes:
        yield Text(f"Note: {line(note)}.", "dim")


def _step_rows(step: ForeseenStep) -> Iterator[Text]:
    kind = words.kind_of(step)
    shown = f"{words.MARKS[step.outlook]} {line(step.step_id)}{f'  {line(kind)}' if kind else ''}"
    time = f"  about {seconds(step.seconds)}" if step.seconds is not None else ""
    yield Text(f"  {shown}  {line(words.outlook_of(step))}{time}")
    if step.asks:
        yield Text(f"      asks: {line(step.asks)}", "yellow")
    if step.change is not None:
        yield Text(f"      {line(step.change.note)}")
        if step.change.rows:
            yield Text("\n").join(
                Text("        ") + row for row in coloured("\n".join(step.change.rows[:MAX_ROWS])).split("\n")
            )
        if (more := len(step.change.rows) - MAX_ROWS) > 0:
            yield Text(f"        ... and {more} more lines")

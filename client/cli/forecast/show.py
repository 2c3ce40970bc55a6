"""Shows what a plan would do if it were started now. Connects to a server that runs, and starts none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from client.cli import environment, output, session, signals
from client.decide.shown import coloured
from client.forecast.forecast import forecast
from client.requests.plan_request import Request
from plans.errors import PlanError
from plans.forecast.models import Forecast, ForeseenStep
from plans.views.safe_text import line
from runtime.connect import find

_MARKS = {"run": "▸", "cached": "=", "skip": "–", "fail": "✗", "blocked": "✗", "depends": "?"}
_WORDS = {
    "run": "runs", "cached": "from an earlier run", "skip": "is skipped", "fail": "fails", "blocked": "cannot start",
    "depends": "depends",
}  # fmt: skip
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
    counts = Counter(step.outlook for step in found.steps if step.tool or step.outlook != "run")
    yield Text("")
    yield Text(
        ", ".join(f"{number} {_plural(name, number)}" for name, number in counts.items()) or "No step would run."
    )
    asks = sum(bool(step.asks) for step in found.steps)
    if asks:
        yield Text(f"{asks} would wait for a person", "yellow")
    yield Text(_time(found))
    for note in found.notes:
        yield Text(f"Note: {line(note)}.", "dim")


def _step_rows(step: ForeseenStep) -> Iterator[Text]:
    size = f"  {step.items} items" if step.items is not None else ""
    tool = f"  {line(step.tool)}" if step.tool else f"  at most {step.rounds} rounds" if step.rounds else size
    time = f"  about {output.seconds(step.seconds)}" if step.seconds is not None else ""
    yield Text(f"  {_MARKS[step.outlook]} {line(step.step_id)}{tool}  {_WORDS[step.outlook]}{_told(step)}{time}")
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


def _told(step: ForeseenStep) -> str:
    if step.taken_from:
        return f": {line(step.taken_from)}"
    on = f" on {', '.join(line(name) for name in step.depends_on[:5])}" if step.depends_on else ""
    on += " ..." if len(step.depends_on) > 5 else ""
    return on + (f": {line(step.why)}" if step.why else "")


def _plural(outlook: str, number: int) -> str:
    one = number == 1
    return {
        "run": "step runs" if one else "steps run",
        "cached": "is taken from an earlier run" if one else "are taken from earlier runs",
        "skip": "is skipped" if one else "are skipped",
        "fail": "fails" if one else "fail",
        "blocked": "cannot start",
        "depends": "depends on what others find" if one else "depend on what others find",
    }[outlook]


def _time(found: Forecast) -> str:
    if not found.earlier:
        return "No earlier run is known: no times, no tokens."
    rests = f"by {found.earlier} earlier run{'s' * (found.earlier != 1)}"
    without = (
        f", without {found.untimed} step{'s' * (found.untimed != 1)} whose time is not known" if found.untimed else ""
    )
    time = f"It takes about {output.seconds(found.seconds)} {rests}{without}" if found.seconds is not None else ""
    tokens = f"about {found.tokens:,} tokens of the LLM {rests}" if found.tokens else ""
    cost = f", {found.cost:.4f} by PLANS_LLM_PRICES" if found.cost is not None and tokens else ""
    return "; ".join(filter(None, (time, f"{tokens}{cost}"))) or "No step's time is known."

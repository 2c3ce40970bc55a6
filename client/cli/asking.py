"""What the command line shows of a call before a person decides about it: all of it, exactly, and what it changes.

The workspace may be on another machine: a file is compared only if the worker is on this one.
"""

from __future__ import annotations

from rich.text import Text

from plansurvive.client.cli.output import fitted, wrapped
from plansurvive.client.cli.session import Connected
from plansurvive.client.decide.call_diff import CHANGING
from plansurvive.client.decide.shown import changes, styles
from plansurvive.plans.views.call_text import call_rows
from plansurvive.plans.views.card import Card
from plansurvive.plans.views.safe_text import line
from plansurvive.runtime.task_queues import serves_this_machine

Details = dict[str, str]
"""Texts to show with a call: the diff of a file, and which file that is."""


async def details(here: Connected, item: Card, queue: str | None = None) -> Details:
    """The diff against the present file if the call changes one here. `queue`: the task queue of the call."""
    queue = item.queue or queue
    if item.tool not in CHANGING or queue is None or not here.connection.is_on_this_machine:
        return {}
    return changes(item) if await serves_this_machine(here.client, queue) else {}


def question(plan: str, item: Card, details: Details) -> list[Text]:
    """A pending decision: whose it is, the whole call, how to decide."""
    head = Text(f"{plan}  {line(item.step_id)}: awaiting {item.wanted}", "bold")
    call = coloured(call_rows(item, details), details, "  ")
    return [head, call, *(Text(row, "dim") for row in ways(plan, item))]


def ways(plan: str, item: Card) -> list[str]:
    """The commands that decide about a pending call, with what `--remember` would cover."""
    one = item.command(plan)
    rows = [f"  {item.commands(plan)}"]
    rows += [f"  with other arguments: {one} --args JSON"] if item.is_call else []
    return [*rows, *wrapped(f"  always: {one} --remember:", line(item.always))] if item.always else rows


def coloured(rows: list[str], details: Details, indent: str = "") -> Text:
    """Rows of a call as a text for a terminal: as it is wide, warnings and lines of a diff in their colour."""
    rows = fitted(rows, len(indent))
    parts = zip(rows, styles(rows, details), strict=True)
    return Text("\n").join(Text(indent + row, style) for row, style in parts)

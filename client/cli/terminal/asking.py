"""What the command line shows of a call before a person decides about it: all of it, exactly, and what it changes.

The workspace may be on another machine: a file is compared only if the worker is on this one.
"""

from __future__ import annotations

from typing import TypeVar

from rich.text import Text

from plansurvive.client.cli.terminal.output import either, fitted, wrapped
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.decide.call_diff import CHANGING
from plansurvive.client.decide.shown import styles, with_change
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.runtime.task_queues import serves_this_machine

T = TypeVar("T", bound=Card)


async def compared(here: Connected, card: T, queue: str | None = None) -> T:
    """The card with the diff against the present file if the call changes one here. `queue`: where the call is made."""
    queue = card.queue or queue
    if card.tool not in CHANGING or queue is None or not here.connection.is_on_this_machine:
        return card
    return with_change(card) if await serves_this_machine(here.client, queue) else card


def question(plan: str, card: Card) -> list[Text]:
    """A pending decision: whose it is, the whole call, how to decide."""
    head = Text(f"{plan}  {line(card.step_id)}: awaiting {card.wanted}", "bold")
    return [head, coloured(card, "  "), *(Text(row, "dim") for row in ways(plan, card))]


def ways(plan: str, item: Card) -> list[str]:
    """The commands that decide about a pending call, with what `--remember` would cover."""
    one = item.command(plan)
    rows = either("  ", item.commands(plan))
    rows += [f"  with other arguments: {one} --args JSON"] if item.takes_args else []
    return [*rows, *wrapped(f"  always: {one} --remember:", line(item.always))] if item.always else rows


def coloured(card: Card, indent: str = "", *, why: bool = True) -> Text:
    """A card as a text for a terminal: as it is wide, warnings and lines of a diff in their colour. `why`: who asks."""
    rows = fitted(call_rows(card, why=why), len(indent))
    parts = zip(rows, styles(rows, card), strict=True)
    return Text("\n").join(Text(indent + row, style) for row, style in parts)

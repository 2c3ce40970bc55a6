"""The change that a call would make to a file, as further rows of the call, and how its rows are coloured.

The call itself is never cut: where the diff stands in place of a text, it holds every line of it that differs. Pure but
for the file that is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from plansurvive.client.decide.call_diff import CallDiff, call_diff
from plansurvive.plans.views.models.card import Card

if TYPE_CHECKING:
    from rich.text import Text

T = TypeVar("T", bound=Card)
NOW = "file now"
"""Name of the row that says what is compared."""
CHANGE = "change diff"
EDITED = "your edit"
"""Name of the rows that say how a person has changed the call that was asked about."""
MARGIN, MORE = "│ ", "┆ "
"""What follows the name of a row, and begins a row that continues one."""
_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


def with_change(card: T) -> T:
    """The card with what its call would change in a file here; as it is if that is not known.

    A text of the name of an argument stands in its place; the others are rows of their own.
    """
    found = call_diff(card)
    return card if found is None else card.model_copy(update={"change": texts_of(card, found)})


def texts_of(item: Card, found: CallDiff) -> dict[str, str]:
    """What a diff that is known says beside the call, by row."""
    diff = "\n".join(each.row for each in found.lines)
    if found.kind == "changed":
        return {NOW: found.note, ("content" if item.tool == "write_file" else CHANGE): diff}
    if found.kind == "deleted" and diff:
        return {NOW: found.note, CHANGE: diff}
    return {NOW: found.note}


def coloured(diff: str) -> Text:
    """A diff that is safe to show, each line in its colour."""
    from rich.text import Text  # terminals only: the image of the web page has none

    return Text("\n").join(Text(row, _STYLES.get(row[:1], "")) for row in diff.split("\n"))


def styles(rows: Iterable[str], card: Card) -> list[str]:
    """The style of each row of a card, folded or not: warnings, and the lines of a diff."""
    diffs = {EDITED, *(name if name == CHANGE else f"{name} diff" for name in card.change if name != NOW)}
    styles: list[str] = []
    in_diff, style = False, ""
    for row in rows:
        if row.startswith("!"):
            in_diff, style = False, "bold yellow"
        elif MORE not in row[:20] or row[:1] != " ":
            name, _, text = row.partition(MARGIN)
            in_diff = name.strip() in diffs if name.strip() else in_diff
            style = _STYLES.get(text[:1], "") if in_diff else ""
        styles.append(style)
    return styles

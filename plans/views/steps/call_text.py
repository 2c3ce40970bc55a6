"""The call that a person decides about, as rows of text: all of it, exactly, with warnings about what is unusual.

Lays out a `Card`. Nothing is cut here. Every row begins with its own mark, so that no text can pose as another row:
`name   │ text` is a text argument (each of its lines has a `│`), `name   = value` any other JSON value, `!` a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from plansurvive.plans.text.safe_text import exact, exact_name
from plansurvive.plans.views.models.card import Card

NAME_WIDTH = 12
"""Columns of the names of arguments."""
CALL_CHARACTERS = 50_000
"""Calls of more characters are not shown among other things: there is only said where to see all of them."""
EMPTY = "(no arguments)"


def call_rows(card: Card, *, why: bool = True) -> list[str]:
    """The rows of a card, warnings first. `why`: with who asks, and for which reasons."""
    rows = [f"! {warning}" for warning in card.warnings]
    parts = [*(card.why if why else ()), *card.subject, *card.places]
    rows += [row for name, value in parts for row in value_rows(name, value)]
    rows += args_rows(card.call, card.change) if card.call is not None else []
    rows += [row for name, value in card.undoing for row in value_rows(name, value)]
    return rows + stored_rows(card)


def stored_rows(card: Card) -> list[str]:
    """The rows of the large values that a call inserts."""
    rows = [f"! {sentence}" for sentence in card.unseen]
    return rows + [row for name, value in card.stored for row in value_rows(name, value)]


def args_rows(args: Mapping[str, Any], change: Mapping[str, str] | None = None) -> list[str]:
    """The rows of a call's arguments, and those of its `change` that stand for none of them."""
    rows, texts = [], dict(change or {})
    for name, value in args.items():
        changed = texts.pop(name, None)
        rows += value_rows(name, value) if changed is None else value_rows(f"{name} diff", changed)
    rows = rows or [EMPTY]
    for name, text in texts.items():
        rows += value_rows(name, text)
    return rows


def folded_rows(rows: Iterable[str], width: int, cells: Any = len) -> list[str]:
    """Rows of at most `width` columns: a longer one continues after a `┆`, at a word, and no character is lost.

    `cells`: the function that measures a text in columns.
    """
    margin = " " * (NAME_WIDTH + 1) + "┆ "
    found = []
    for row in rows:
        limit = max(20, width)
        for at, (start, end) in enumerate(pairwise(_cuts(row, limit, limit - len(margin), cells))):
            found.append(margin + row[start:end] if at else row[start:end])
    return found


def _cuts(row: str, first: int, rest: int, cells: Any) -> list[int]:
    """Where to fold a row, its start and its end included: behind a space, if one is in the second half of the room."""
    found, room = [0], first
    while (end := _end(row, found[-1], room, cells)) < len(row):
        space = row.rfind(" ", found[-1] + room // 2, end)
        found.append(end if space < 0 else space + 1)
        room = rest
    return [*found, len(row)]


def _end(row: str, start: int, room: int, cells: Any) -> int:
    """Where the text from `start` on has filled the room."""
    if row[start : start + room].isascii():  # one column each; long texts mostly are
        return min(start + room, len(row))
    used = 0
    for index in range(start, len(row)):
        used += cells(row[index])
        if used > room:
            return index
    return len(row)


def value_rows(name: str, value: Any) -> list[str]:
    """The rows of one value, with its name."""
    head = f"{exact_name(name):<{NAME_WIDTH}} "
    if isinstance(value, str):
        lines = exact(value).split("\n")
        mark = "│ "
    else:
        lines = exact(json.dumps(value, ensure_ascii=False, indent=2, default=str)).split("\n")
        mark = "= "
    return [(head if index == 0 else " " * (NAME_WIDTH + 1)) + mark + text for index, text in enumerate(lines)]

"""The call that a person decides about, as rows of text: all of it, exactly, with warnings about what is unusual.

Nothing is cut here. Every row begins with its own mark, so that no text can pose as another row:
`name   │ text` is a text argument (each of its lines has a `│`), `name   = value` any other JSON value, `!` a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from plans.activity_io import LargeValue
from plans.views.models import PendingView
from plans.views.safe_text import exact, unusual

NAME_WIDTH = 12
"""Columns of the names of arguments."""
CALL_CHARACTERS = 50_000
"""Calls of more characters are not shown among other things: there is only said where to see all of them."""
EMPTY = "(no arguments)"


def call_rows(item: PendingView, extra: Mapping[str, str] | None = None) -> list[str]:
    """The rows of a pending call, warnings first. `extra`: texts to show instead of an argument's, such as a diff."""
    rows = [f"! {warning}" for warning in warnings_of(item)]
    rows += value_rows("tool", item.tool)
    rows += value_rows("what", item.description) if item.description else []
    rows += value_rows("queue", item.queue) if item.queue else []
    rows += value_rows("workspace", item.workspace) if item.workspace else []
    rows += args_rows(item.args, extra)
    for name, value in item.large.items():
        rows += large_rows(name, value, item.values.get(name))
    return rows


def args_rows(args: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> list[str]:
    """The rows of a call's arguments."""
    rows = []
    for name, value in args.items():
        changed = (extra or {}).get(name)
        rows += value_rows(name, value) if changed is None else value_rows(f"{name} (diff)", changed)
    return rows or [EMPTY]


def large_rows(name: str, value: LargeValue, text: str | None) -> list[str]:
    """What is known of a value that is stored outside history: all of it (`text`), or how to see all of it."""
    if text is not None:
        return value_rows(f"value of '{name}'", text)
    about = f"{value.bytes:,} bytes, sha256 {value.sha256}; see all of it: plan pending PLAN STEP --full"
    return [
        f"! '{exact(name)}' is a large value that is filled in when the call starts: {about}",
        *value_rows(f"first part of '{name}'", value.preview),
    ]


def characters(item: PendingView) -> int:
    """Length of the texts of a call, in characters."""
    return sum(len(text) for text in texts_in(item.args)) + len(item.description)


def warnings_of(item: PendingView) -> list[str]:
    """Warnings about what is unusual in a call, with the argument it is in."""
    texts: list[tuple[str, Any]] = [("tool", item.tool), ("description", item.description), *item.args.items()]
    texts += [(f"value of '{name}'", item.values.get(name, value.preview)) for name, value in item.large.items()]
    return unusual_in(texts)


def unusual_in(values: Iterable[tuple[str, Any]]) -> list[str]:
    """What is unusual in named values: `command: U+200B ZERO WIDTH SPACE: invisible`."""
    found = []
    for name, value in values:
        found += [f"name of an argument: {each}" for each in unusual(name)]
        found += [f"{_one_line(name)}: {each}" for text in texts_in(value) for each in unusual(text)]
    return list(dict.fromkeys(found))


def texts_in(value: Any) -> Iterable[str]:
    """All texts of a JSON value, names of fields included."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [part for pair in item.items() for part in pair][::-1]
        elif isinstance(item, list):
            stack += item[::-1]


def folded_rows(rows: Iterable[str], width: int, cells: Any = len) -> list[str]:
    """Rows of at most `width` columns: a longer one continues after a `┆`, and no character is lost.

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
    """Where to fold a row, its start and its end included."""
    if not row:
        return [0, 0]
    if row.isascii():  # one column each; long texts mostly are
        return [0, *range(first, len(row), rest), len(row)]
    found, used, room = [0], 0, first
    for index, char in enumerate(row):
        size = cells(char)
        if used + size > room:
            found.append(index)
            used, room = 0, rest
        used += size
    return [*found, len(row)]


def value_rows(name: str, value: Any) -> list[str]:
    """The rows of one value, with its name."""
    head = f"{_one_line(name):<{NAME_WIDTH}} "
    if isinstance(value, str):
        lines = exact(value).split("\n")
        mark = "│ "
    else:
        lines = exact(json.dumps(value, ensure_ascii=False, indent=2, default=str)).split("\n")
        mark = "= "
    return [(head if index == 0 else " " * (NAME_WIDTH + 1)) + mark + text for index, text in enumerate(lines)]


def _one_line(name: str) -> str:
    return exact(name).replace("\n", "\\u{a}")

"""The call that a person decides about, as rows of text: all of it, exactly, with warnings about what is unusual.

A proposal (how to recover a failed step, whether to exceed a budget) is shown in words, with every call it would lead
to. Nothing is cut here. Every row begins with its own mark, so that no text can pose as another row:
`name   │ text` is a text argument (each of its lines has a `│`), `name   = value` any other JSON value, `!` a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from plans.large_value import LargeValue
from plans.views.models import PendingView
from plans.views.safe_text import exact, unusual

NAME_WIDTH = 12
"""Columns of the names of arguments."""
CALL_CHARACTERS = 50_000
"""Calls of more characters are not shown among other things: there is only said where to see all of them."""
EMPTY = "(no arguments)"
CALLS = ("approval", "early", "")
"""Kinds of pending decisions that are about a call of the step's tool; others are about a proposal."""


def call_rows(item: PendingView, extra: Mapping[str, str] | None = None, *, why: bool = True) -> list[str]:
    """The rows of a pending call, warnings first. `extra`: texts to show instead of an argument's, such as a diff.

    `why`: with who asks, and for which reasons.
    """
    rows = [f"! {warning}" for warning in warnings_of(item)]
    rows += value_rows("asks", item.asker) if item.asker and why else []
    rows += [row for reason in item.reasons if why for row in value_rows("because", reason)]
    proposed = proposal(item)
    rows += value_rows("tool", item.tool) if not proposed else []
    rows += [row for name, value in proposed for row in value_rows(name, value)]
    rows += value_rows("what", item.description) if item.description else []
    rows += value_rows("item", item.item) if item.item else []
    rows += value_rows("queue", item.queue) if item.queue else []
    rows += value_rows("workspace", item.workspace) if item.workspace else []
    rows += args_rows(item.args, extra) if not proposed else []
    for name, value in item.large.items():
        rows += large_rows(name, value, item.values.get(name))
    return rows


def proposal(item: PendingView) -> list[tuple[str, Any]]:
    """What is proposed instead of a call, as (name, value), all of it; empty if a call awaits approval."""
    if item.kind in CALLS or item.kind not in item.args:
        return []
    proposed, rest = item.args[item.kind], {name: each for name, each in item.args.items() if name != item.kind}
    failure = rest.pop("failure", "")
    after = [("failure", failure)] if failure else []
    if item.kind == "recovery" and isinstance(proposed, Mapping):
        return [*_recovery(item, proposed, after, rest.pop("call", None)), *rest.items()]
    if item.kind == "budget":
        after += [("if approved", rest.pop("approve", "the budget is raised by half, and the LLM is asked again"))]
        after += [("if denied", rest.pop("deny", f"the LLM is not asked: step '{item.step_id}' fails"))]
    return [(item.kind, proposed), *after, *rest.items()]


def _recovery(
    item: PendingView, choice: Mapping[str, Any], failure: list[tuple[str, Any]], call: Any
) -> list[tuple[str, Any]]:
    """The LLM's choice about a failed step in words, and the calls that it leads to."""
    action, given = choice.get("action"), {name: each for name, each in choice.items() if name != "action"}
    inserted, args = given.pop("steps", None), given.pop("args", None)
    steps = inserted if isinstance(inserted, list) else []
    count = f"{len(steps)} step{'s' * (len(steps) != 1)}"
    words = {
        "retry": "call it again, with other arguments" if args is not None else "call it again, unchanged",
        "skip": "skip it; steps that do not use its value continue",
        "insert": f"insert {count}, then call it again",
    }
    rows = [("recovery", f"of step '{item.step_id}': {words.get(str(action), action)}")]
    rows += [("reason", given.pop("reason"))] if given.get("reason") else []
    rows += [*failure, ("tool", item.tool)]
    rows += _named(call.get("args")) if isinstance(call, Mapping) else _named(args)
    for number, step in enumerate(steps, 1):
        rows += _inserted(f"{number}.", step)
    return rows + [(name, each) for name, each in given.items() if each]


def _inserted(number: str, step: Any) -> list[tuple[str, Any]]:
    """A step that is to be inserted: its id, its tool, every argument and every other field."""
    if not isinstance(step, Mapping):
        return [(number, step)]
    rest = {name: each for name, each in step.items() if name not in ("id", "tool", "args")}
    head = [(f"{number} step", step.get("id")), (f"{number} tool", step.get("tool"))]
    fields = [(f"{number} {name}", each) for name, each in rest.items() if each not in (None, "", [], {})]
    return [*head, *((f"{number} {name}", each) for name, each in _named(step.get("args"))), *fields]


def _named(args: Any) -> list[tuple[str, Any]]:
    return list(args.items()) if isinstance(args, Mapping) else []


def args_rows(args: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> list[str]:
    """The rows of a call's arguments, and those of the `extra` texts that stand for none of them."""
    rows, texts = [], dict(extra or {})
    for name, value in args.items():
        changed = texts.pop(name, None)
        rows += value_rows(name, value) if changed is None else value_rows(f"{name} diff", changed)
    rows = rows or [EMPTY]
    for name, text in texts.items():
        rows += value_rows(name, text)
    return rows


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

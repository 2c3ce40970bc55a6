"""Pieces of the parser of jq: its tokens, its strings, and what its functions and `+` are here."""

from __future__ import annotations

import json
import re

from plansurvive.apps.importers.common.expressions import (
    Call,
    Const,
    Listed,
    Made,
    Node,
    NotCarried,
    Op,
    Path,
    Text,
    joined,
    selected,
)

MAX_CHARACTERS = 10_000
MAX_TOKENS = 300
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<variable>\$[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>//|==|!=|<=|>=|[|<>.()\[\]{},:+*/?-]))",
    re.DOTALL,
)
WITH_TEXT = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}


def tokens_of(text: str) -> list[tuple[str, str]]:
    """The tokens of an expression, each with its kind. Raises NotCarried."""
    if len(text) > MAX_CHARACTERS:
        raise NotCarried(f"an expression of {len(text)} characters")
    found: list[tuple[str, str]] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or match.end() == at or len(found) > MAX_TOKENS:
            raise NotCarried(f"the expression {text[:200]!r}")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        at = match.end()
    return found


def added(left: Node, right: Node) -> Node:
    """The sum of two objects, lists or texts. Raises NotCarried for anything else."""
    if isinstance(left, Made) and isinstance(right, Made):
        return Made({**left.fields, **right.fields})
    if isinstance(right, Made) and isinstance(left, Path | Call):
        return Call("merge", (left, right))
    if isinstance(left, Listed) and isinstance(right, Listed):
        return Listed((*left.items, *right.items))
    texts = [isinstance(each, Text) or (isinstance(each, Const) and isinstance(each.value, str))
             for each in (left, right)]  # fmt: skip
    if any(texts):
        return joined(left, right)
    raise NotCarried("values added to each other")


def applied(name: str, dot: Node, arg: Node) -> Node:
    """A function with one argument. Raises NotCarried."""
    if name == "map":
        if isinstance(arg, Path):
            return arg
        raise NotCarried("map() of more than a path")
    if name == "has" and isinstance(arg, Const):
        return Op("!=", (selected(dot, arg.value), Const(None)))
    if name == "join":
        return Call("join", (arg, dot))
    return Call(WITH_TEXT[name], (dot, arg))


def plain_text(token: str) -> str:
    """The value of a quoted text. Raises NotCarried."""
    try:
        return str(json.loads(token))
    except ValueError:
        raise NotCarried("a text that cannot be read") from None


def interpolation(text: str) -> int:
    r"""Where the first `\(` is that no backslash precedes; -1: nowhere."""
    found = re.match(r"(?:[^\\]|\\[^(])*?(?=\\\()", text, re.DOTALL)
    return found.end() if found else -1


def closing(text: str, at: int) -> int:
    """The index of the parenthesis that closes the one before `at`. Raises NotCarried."""
    depth = 1
    for index in range(at, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if not depth:
            return index
    raise NotCarried("a text with an expression that has no end")

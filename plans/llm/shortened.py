"""Arguments and answers of a model as JSON on one line, with long parts cut, for its later prompts.

The text is written by a model or a person, so it may imitate what a prompt means: line breaks of any kind and the marks
`[SUCCESS]`, `[ERROR]`, `<<<DATA` and `DATA ...>>>` are written with JSON escapes, which leave the value as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

ARGS_CHARACTERS = 300
"""Maximum length of the arguments that name a call."""
CHANGED_CHARACTERS = 2_000
"""Maximum length of arguments that a person changed: the model has not seen them before."""
ANSWER_CHARACTERS = 12_000
"""Maximum length of an earlier answer of the model."""
MAX_ITEMS = 100
"""Items of a list or an object that are kept; tool calls of an answer have the same limit."""
MAX_DEPTH = 8
_LIMITS = (2_000, 500, 100, 20)
"""Lengths that texts are cut to, the first that makes the whole fit."""
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|\[(?=SUCCESS|ERROR)|<(?=<<DATA)|D(?=ATA [0-9a-f]+>>>)"
)


def json_line(value: Any) -> str:
    """The value as JSON on one line, which encodes as UTF-8 and imitates no mark of a prompt."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def args_line(args: Mapping[str, Any], limit: int = ARGS_CHARACTERS) -> str:
    """Arguments as JSON of about `limit` characters at most; empty if there are none."""
    return _fitting(args, limit) if args else ""


def answer_line(fields: Mapping[str, Any]) -> str:
    """The fields of an answer that are set, as JSON of ANSWER_CHARACTERS at most."""
    return _fitting(
        {name: value for name, value in fields.items() if value not in (None, "", [], {})}, ANSWER_CHARACTERS
    )


def _fitting(value: Mapping[str, Any], limit: int) -> str:
    line = ""
    for each in _LIMITS:
        line = json_line(_cut(value, each, 0))
        if len(line) <= limit:
            return line
    return f"{line[: limit - 1]}…"


def _cut(value: Any, limit: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]}...[cut: {limit:,} of {len(value):,} characters]"
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth == MAX_DEPTH:
        return "...[cut: nested deeper]"
    more = f"...[cut: {MAX_ITEMS} of {len(value):,} items]"
    if isinstance(value, Mapping):
        kept = {str(name)[:100]: _cut(item, limit, depth + 1) for name, item in list(value.items())[:MAX_ITEMS]}
        return kept if len(value) <= MAX_ITEMS else {**kept, "...": more}
    items = [_cut(item, limit, depth + 1) for item in value[:MAX_ITEMS]]
    return items if len(value) <= MAX_ITEMS else [*items, more]

"""What parsers and pydantic say of a text or value, in the words of plan files and settings, with what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json import JSONDecodeError
from typing import Any

_OR_MODEL = re.compile(r" or instance of \w+")
"""A class of ours, which no file can hold."""
_WORDS = (
    ("Value error, ", ""),
    ("Input should be", "should be"),
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    (", unable to interpret input", ""),
    (", got a number with a fractional part", ""),
    (" after validation", ""),
    ("a valid list", "a list"),
    ("a valid dictionary", "an object (`name: value`)"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid string", "a string"),
    ("a valid boolean", "true or false"),
    ("String should have at least 1 character", "should not be empty"),
    ("String should have", "should have"),
    ("List should have", "should have"),
    (
        "String should match pattern '^[0-9a-f]{64}$'",
        "it has 64 digits, 0-9 and a-f; `plan pending --json` shows it",
    ),
)


def in_plain_words(message: str) -> str:
    """A message of pydantic in plain words."""
    for technical, plain in _WORDS:
        message = message.replace(technical, plain)
    return _OR_MODEL.sub("", message)


def shown(value: Any, length: int = 80) -> str:
    """A value as files write it, cut to so many characters."""
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = {"None": "null", "True": "true", "False": "false"}.get(repr(value), repr(value))
    return text if len(text) <= length else f"{text[: length - 3]}..."


def place_in(data: Any, loc: Sequence[str | int], *, is_missing: bool) -> tuple[str | int, ...]:
    """The keys that lead to what pydantic found; without what names one of several types that a value may have."""
    place = list[str | int]()
    at = data
    for number, part in enumerate(loc):
        is_item = isinstance(at, list) and part in range(len(at))
        if is_item or (isinstance(at, dict) and part in at):
            place.append(part)
            at = at[part]
        elif is_missing and number == len(loc) - 1:
            place.append(part)
    return tuple(place)


_JSON = (
    ("Expecting property name", r"\}|\]|,", "there is an extra comma before this; remove it"),
    ("Expecting property name", r"'", "names and texts are written in double quotes: replace the single ones"),
    ("Expecting property name", r"/|#", "JSON has no comments; remove it, or write the plan as YAML"),
    ("Expecting property name", r"$", "the text ends inside an object; add what is missing, and `}`"),
    ("Expecting property name", r"", "the name of a field is written in double quotes"),
    ("Illegal trailing comma", r"", "there is an extra comma; remove it"),
    ("Expecting value", r"\}|\]|,", "a value is missing, or there is an extra comma"),
    ("Expecting value", r"$", "the text ends where a value is missing; add it, and close what is open"),
    ("Expecting value", r"'", "texts are written in double quotes: replace the single ones"),
    ("Expecting value", r"/|#", "JSON has no comments; remove it, or write the plan as YAML"),
    ("Expecting value", r"True|False|None", "true, false and null are written in small letters"),
    ("Expecting value", r"", "this is not a value; a text is written in double quotes"),
    ("Expecting ',' delimiter", r"$", "the text ends inside a list or an object; add the missing `]` or `}`"),
    ("Expecting ',' delimiter", r"", "a comma, or the end of the list or object, is missing before this"),
    ("Expecting ':' delimiter", r"", "a colon is missing between the name of a field and its value"),
    ("Extra data", r"", "there is more text after the end; remove it, or what closed it too early"),
    ("Invalid control character", r"", "a text ends with its line; write \\n for a line break in it"),
    ("Unterminated string", r"", "the text that begins here has no end; add the double quotes"),
    ("Invalid \\", r"", "a backslash in a text is written twice: \\\\"),
)
"""What the parser of JSON says, what stands there, and the same in plain words; the first that fits counts."""


def json_problem(error: ValueError) -> str:
    """Where a text is not JSON, and what to write there, of what the parser raised."""
    if not isinstance(error, JSONDecodeError):
        return str(error)
    at = error.doc[error.pos :].lstrip()[:8]
    plain = (text for says, there, text in _JSON if error.msg.startswith(says) and re.match(there, at))
    return f"line {error.lineno}, column {error.colno}: {next(plain, error.msg)}"

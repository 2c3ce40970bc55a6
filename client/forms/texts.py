"""Values as the text of a form field, and text as values.

A text with characters that could draw on a screen, or that nobody sees, is written as JSON, so that it is read back
unchanged.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from plansurvive.client.forms.kinds import Kind
from plansurvive.plans.definition.parsing import Unreadable as NotAValue
from plansurvive.plans.definition.parsing import check_depth, check_values
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.text.safe_text import safe


class _Absent:
    """Marks a value that is not given."""

    def __repr__(self) -> str:
        return "not given"


ABSENT = _Absent()


class Unreadable(ValueError):
    """The text in a field is not a valid value for it."""


def text_of(kind: Kind, value: Any) -> str:
    """Format a value as the text of a field of this kind."""
    if value is ABSENT:
        return ""
    if kind == "text" or (kind in ("integer", "number") and isinstance(value, str)):
        return str(value)
    text = json.dumps(value, ensure_ascii=False, indent=None if kind == "choice" else 2)
    return text if safe(text) == text else json.dumps(value, indent=2)


def is_plain(value: Any) -> bool:
    """Whether a value is a text that can be shown as it is."""
    return isinstance(value, str) and safe(value) == value


def is_reference(text: str) -> bool:
    """Whether a text may stand for another step's value: `$step`, `{{step}}`."""
    return text.startswith("$") or "{{" in text


def number(kind: Kind, text: str) -> Any:
    """The number that a text means, whole if the kind is `integer`. Raises Unreadable."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        check_values(value)
    except (ValueError, RecursionError, NotAValue):
        value = None
    wanted = int if kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise Unreadable(f"{text[:40]!r} is not a {'whole number' if kind == 'integer' else 'number'}")
    return value


def json_value(text: str) -> Any:
    """The JSON value that a text means. Raises Unreadable with the place of the mistake."""
    try:
        check_depth(text)
        value = json.loads(text, parse_constant=_refuse)
        check_values(value)
    except json.JSONDecodeError as error:
        raise Unreadable(f"not valid JSON: {json_problem(error)}") from None
    except NotAValue as error:
        raise Unreadable(f"not valid JSON: {error.problem.message}") from None
    except ValueError as error:
        raise Unreadable(f'not valid JSON, {error}; write a text in quotes: "..."') from None
    return value


def loose_value(text: str) -> Any:
    """The JSON value that a text means, else the text itself. Raises Unreadable for what begins like JSON."""
    try:
        return json_value(text)
    except Unreadable:
        if text[:1] in ("{", "[", '"'):
            raise
        return text


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")

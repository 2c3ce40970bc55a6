"""Prepares a tool's value for history: checks that it is JSON, and moves large values to the value store.

A value that a workflow cannot parse would leave it stuck, so anything that is not a JSON value (NaN, bytes, lone
surrogates, nesting deeper than 64) is rejected here, where only the step fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import BaseModel

from plansurvive.activities.values.redaction import Secrets
from plansurvive.plans.activity_io import MAX_VALUE_BYTES
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.runtime.value_store import AT_ONCE_BYTES, Stream

if TYPE_CHECKING:
    from plansurvive.runtime.value_store import ValueStore

MAX_DEPTH = 64
"""Maximum nesting of lists and objects."""
_SCALARS = (str, int, float, bool, type(None))
"""Types of values that are the same when their JSON text is parsed."""
FEW, SHORT = 20, 2_000
"""Members of an object or list, and characters of a text in one, of a small value."""


async def keep(value: Any, values: ValueStore, secrets: Secrets | None = None) -> Any | LargeValue:
    """The value for history: parsed from its JSON text, or a LargeValue in the store if the text is too long.

    Secrets are redacted. Fields that are streams are stored already. Raises ToolError BAD_VALUE or VALUE_TOO_LARGE.
    """
    if isinstance(value, dict) and any(isinstance(each, Stream) for each in value.values()):
        return await values.put_with_streams(_masked(value, secrets) if secrets else value)
    text = json_text(value) if _is_small(value) else await asyncio.to_thread(json_text, value)
    if secrets and secrets.are_in(text):  # by value, as a text is more than its JSON, and a number is no text
        value = secrets.out_of_value(json.loads(text))
        text = json_text(value)
    size = len(text.encode())
    if size <= values.inline_bytes:
        return value if type(value) in _SCALARS else json.loads(text)
    if size > MAX_VALUE_BYTES:
        raise ToolError(
            "VALUE_TOO_LARGE",
            f"the value is {size // 1024 // 1024} MiB of JSON, the maximum is {MAX_VALUE_BYTES // 1024 // 1024} MiB;"
            " write it to a file and return the path",
        )
    return await values.put(text)


def json_text(value: Any) -> str:
    """The value as JSON text that every JSON parser accepts. Raises ToolError BAD_VALUE."""
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except UnicodeEncodeError:
        raise _bad("it contains text that is not valid Unicode (lone surrogates)") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _bad(str(error) or type(error).__name__) from None
    if type(value) not in _SCALARS and _depth(value) > MAX_DEPTH:
        raise _bad(f"it is nested deeper than {MAX_DEPTH}")
    return text


def json_value(text: str | bytes) -> Any:
    """Parse JSON text. Raises ValueError, also for NaN and infinities, or RecursionError."""
    return json.loads(text, parse_constant=_not_finite)


def _masked(value: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    """A value with streams, which were masked as they were written."""
    return {name: each if isinstance(each, Stream) else secrets.out_of_value(each) for name, each in value.items()}


def _is_small(value: Any) -> bool:
    """Whether the value is a text or number, or a flat list or object of few, that takes microseconds to write."""
    if isinstance(value, dict):
        return len(value) <= FEW and all(_is_short(name) and _is_short(each) for name, each in value.items())
    if isinstance(value, list):
        return len(value) <= FEW and all(map(_is_short, value))
    return (isinstance(value, str) and len(value) <= AT_ONCE_BYTES // 4) or _is_short(value)


def _is_short(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= SHORT)


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _model(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"it contains a {type(value).__name__}")


def _depth(value: Any) -> int:
    """Nesting depth of lists and objects; counting stops at MAX_DEPTH + 1."""
    depth, level = 0, [value]
    while depth <= MAX_DEPTH:
        level = [child for item in level for child in _children(item)]
        if not level:
            break
        depth += 1
    return depth


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_model)


def _bad(reason: str) -> ToolError:
    return ToolError(
        "BAD_VALUE",
        f"the tool's value is not a JSON value: {reason}; return strings, numbers, booleans, lists and objects",
    )

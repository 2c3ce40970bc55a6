"""A tool's value on its way into history: proved to be JSON, small enough, or kept in the value store.

What a workflow cannot read would stop it for good, so what is no JSON value (NaN, bytes, lone surrogates, nesting
past 64) is refused here, where only the step fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import BaseModel

from activities.attempt.redaction import Secrets
from plans.activity_io import MAX_VALUE_BYTES, LargeValue
from plans.errors import ToolError

if TYPE_CHECKING:
    from runtime.value_store import ValueStore

MAX_DEPTH = 64
"""Lists and objects inside each other, at most."""


async def keep(value: Any, values: ValueStore, secrets: Secrets | None = None) -> Any | LargeValue:
    """The value as history holds it: as read from its JSON text, or stored when that is too long.

    Secrets are taken out of it. Raises ToolError BAD_VALUE or VALUE_TOO_LARGE.
    """
    text = await asyncio.to_thread(json_text, value)
    text = secrets.out_of(text) if secrets else text
    size = len(text.encode())
    if size > MAX_VALUE_BYTES:
        raise ToolError(
            "VALUE_TOO_LARGE",
            f"the value is {size // 1024 // 1024} MiB of JSON, the most is {MAX_VALUE_BYTES // 1024 // 1024} MiB;"
            " write it to a file and return the path",
        )
    return await values.kept(text) or json.loads(text)


def json_text(value: Any) -> str:
    """The value as JSON text that any reader accepts. Raises ToolError BAD_VALUE."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_model)
        text.encode()
    except UnicodeEncodeError:
        raise _bad("it holds text that is not valid Unicode (lone surrogates)") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _bad(str(error) or type(error).__name__) from None
    if _depth(value) > MAX_DEPTH:
        raise _bad(f"it is nested deeper than {MAX_DEPTH}")
    return text


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, for NaN and the infinities too, or RecursionError."""
    return json.loads(text, parse_constant=_not_finite)


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _model(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"it holds a {type(value).__name__}")


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, counted up to one more than allowed."""
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


def _bad(reason: str) -> ToolError:
    return ToolError(
        "BAD_VALUE", f"the tool's value is no JSON value: {reason}; return text, numbers, lists and objects"
    )

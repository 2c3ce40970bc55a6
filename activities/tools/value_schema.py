"""Derives the JSON Schema of a tool's value from the function's return annotation.

A TypedDict is closed: the value has its fields and no others, so that a reference to another field is a mistake that is
found before the plan runs. What cannot be described is left open.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, NoReturn, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

MAX_DEPTH = 10
"""Levels of definitions in definitions that are followed."""


def value_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of values of this type; None if any value is possible, or none."""
    if annotation in (None, Any, NoReturn, type(None), object):
        return None
    try:
        found = TypeAdapter(annotation if sys.version_info >= (3, 12) else _readable(annotation)).json_schema()
    except (PydanticUserError, TypeError, ValueError, NameError):
        return None
    plain = _plain(found, found.get("$defs", {}), 0)
    return plain if isinstance(plain, dict) and plain else None


def _readable(annotation: Any, depth: int = 0) -> Any:
    """The type with the TypedDicts of typing_extensions, the only ones that pydantic reads on Python 3.11."""
    if depth > MAX_DEPTH:
        return Any
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        fields = {name: _readable(each, depth + 1) for name, each in hints.items()}
        optional = annotation.__optional_keys__
        marked = {name: NotRequired[each] if name in optional else each for name, each in fields.items()}
        return TypedDict(annotation.__name__, marked)  # type: ignore[operator]  # made of values
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        return reduce(or_, (_readable(each, depth + 1) for each in inner))
    if origin in (list, dict, tuple, set, frozenset):
        return origin[tuple(_readable(each, depth + 1) for each in inner)]
    return annotation


def _plain(schema: Any, definitions: Mapping[str, Any], depth: int) -> Any:
    """The schema without references, titles and descriptions; objects with named fields are closed."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {}
    if "$ref" in schema:
        return _plain(definitions.get(str(schema["$ref"]).removeprefix("#/$defs/")), definitions, depth + 1)
    found = {name: schema[name] for name in ("type", "enum", "const") if name in schema}
    if "properties" in schema:
        fields = {name: _plain(each, definitions, depth + 1) for name, each in schema["properties"].items()}
        found |= {"properties": fields, "additionalProperties": schema.get("additionalProperties", False)}
    elif isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = _plain(schema["additionalProperties"], definitions, depth + 1)
    if "items" in schema:
        found["items"] = _plain(schema["items"], definitions, depth + 1)
    if "anyOf" in schema:
        found["anyOf"] = [_plain(each, definitions, depth + 1) for each in schema["anyOf"]]
    return found

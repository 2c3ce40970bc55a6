"""JSON Schemas for values of which only an example is known: what a form may offer, never a rule that refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MAX_DEPTH = 3


def shape_of(example: Any, depth: int = 0) -> dict[str, Any]:
    """The kinds of an example and of what is in it; `{}` where nothing is known, or items differ."""
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int | float):
        return {"type": "number"}
    if isinstance(example, str):
        return {"type": "string"}
    if depth >= MAX_DEPTH:
        return {}
    if isinstance(example, list):
        return {"type": "array", "items": _common(shape_of(each, depth + 1) for each in example)}
    if isinstance(example, Mapping):
        return {"type": "object", "properties": {str(key): shape_of(each, depth + 1) for key, each in example.items()}}
    return {}


def _common(shapes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What all of them are; fields that only some objects have count as well."""
    common: dict[str, Any] | None = None
    for shape in shapes:
        common = shape if common is None else _both(common, shape)
    return common or {}


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if one == other:
        return one
    if one.get("type") != "object" or other.get("type") != "object":
        return {}
    first, second = one["properties"], other["properties"]
    shared = {name: _both(first[name], second[name]) for name in first if name in second}
    return {"type": "object", "properties": {**first, **second, **shared}}

"""Translates a place in a plan's data, as pydantic reports it, into the step's path and its field, as people read them.

`("steps", 1, "catch", 0, "steps", 2, "args", "path")` becomes step `resize.catch.notify`, field `args.path`. The
alternatives of a switch share the namespace of their step, so that they add no part of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Location = Sequence[int | str]

_WITHIN: Mapping[tuple[str, ...], str] = {
    ("steps",): "",
    ("switch", "steps"): "",
    ("catch", "steps"): "catch",
    ("finally",): "finally",
    ("undo", "steps"): "undo",
}
"""By the fields that lead to a list of steps, the part of the path that they add."""
MAX_FIELD = 300
"""Characters of the field that a problem names: one long key can hold thousands of mistakes."""


def step_and_field(data: Any, location: Location) -> tuple[str | None, list[str | int]]:
    """The path of the innermost step at a location, None for the plan itself; and the rest of the location."""
    parts, names, at = list(location), list[str](), data
    fields: list[str] = []
    rest = 0
    for index, part in enumerate(parts):
        at = _inside(at, part)
        if isinstance(part, str):
            fields.append(part.rstrip("_"))
        elif tuple(fields) in _WITHIN:
            names += [each for each in (_WITHIN[tuple(fields)], _name(at, part)) if each]
            fields, rest = [], index + 1
        elif len(fields) != 1 or fields[0] not in ("switch", "catch"):
            break  # an item of another list
    return ".".join(names) or None, parts[rest:]


def field_of(data: Any, location: Location) -> tuple[int | str, ...]:
    """The beginning of a location that ends with the field of the innermost step, or of the plan; empty: all of it."""
    rest = len(step_and_field(data, location)[1])
    return tuple(location[: len(location) - rest + 1]) if rest else ()


def without(data: Any, places: Collection[tuple[int | str, ...]]) -> Any:
    """The data without the fields at these places. What has none of them is not copied."""
    if not places:
        return data
    gone = {place[0] for place in places if len(place) == 1}
    deeper: dict[int | str, list[tuple[int | str, ...]]] = {}
    for place in places:
        if len(place) > 1 and place[0] not in gone:
            deeper.setdefault(place[0], []).append(place[1:])
    if isinstance(data, Mapping):
        return {key: without(value, deeper.get(key, ())) for key, value in data.items() if key not in gone}
    if isinstance(data, list):
        return [without(value, deeper.get(index, ())) for index, value in enumerate(data)]
    return data


def real_part(data: Any, location: Location, missing: bool) -> list[int | str]:
    """The location without the names of alternatives that pydantic adds for a field of several types."""
    found, at = list[int | str](), data
    for index, part in enumerate(location):
        is_last = index == len(location) - 1
        if not _has(at, part) and not (missing and is_last):
            break
        found.append(part)
        at = _inside(at, part)
    return found


def _has(at: Any, part: int | str) -> bool:
    if isinstance(at, Mapping):
        return part in at
    return isinstance(at, list) and isinstance(part, int) and part < len(at)


def _inside(at: Any, part: int | str) -> Any:
    return at[part] if _has(at, part) else None


def _name(step: Any, index: int) -> str:
    name = step.get("id") if isinstance(step, Mapping) else None
    return name[:128] if isinstance(name, str) and name else f"#{index + 1}"

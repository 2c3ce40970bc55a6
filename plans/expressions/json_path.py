"""Sets a value inside JSON data by a dotted path, such as `args.rows[0].name`."""

from __future__ import annotations

import re
from typing import Any

_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


class PathError(ValueError):
    """A path that is malformed or does not exist in the data."""


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at `path`; None removes it. Missing objects on the way are created. Raises PathError."""
    *parents, last = parts(path)
    place: Any = data
    for part in parents:
        place = _enter(place, part)
    if isinstance(place, dict):
        if value is None:
            place.pop(str(last), None)
        else:
            place[str(last)] = value
    elif isinstance(place, list) and str(last).isdigit() and int(last) <= len(place):
        _put_item(place, int(last), value)
    else:
        raise PathError(f"there is no field '{last}' here")


def first_name(path: str) -> str:
    """The name that a path begins with: `args` of `args.rows[0].name`."""
    return path.split(".")[0].split("[")[0]


def parts(path: str) -> list[str]:
    """Split a path into names and indexes. Raises PathError."""
    found = [match[1] or match[2] for match in _PART.finditer(path)]
    if not found or "".join(match[0] for match in _PART.finditer(path)) != path:
        raise PathError("this is not a path; write names separated by dots: args.path")
    return found


def _enter(place: Any, part: str) -> Any:
    if isinstance(place, dict):
        return place.setdefault(part, {})
    if isinstance(place, list) and part.isdigit() and int(part) < len(place):
        return place[int(part)]
    raise PathError(f"there is no '{part}' here")


def _put_item(items: list[Any], index: int, value: Any) -> None:
    if value is None:
        del items[index : index + 1]
    else:
        items[index : index + 1] = [value]

"""Values of a type that is known before a plan runs, used where only values of another type can be.

Said of what fails whatever runs. Where a type is not known for certain, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.plans.definition.arguments import KINDS
from plansurvive.plans.definition.checks.types import NAMES, Schema, type_of
from plansurvive.plans.expressions.references import Reference
from plansurvive.plans.model import ToolSpec

_FITS = {"integer": frozenset(("integer", "number")), "number": frozenset(("integer", "number"))}
_LIST = (
    "find_files gives a list of files; for any other list, let a step write it to a file as JSON, and read that with"
    " read_json"
)


def not_a_list(items: str, schema: Schema | None) -> str:
    """What to write for the list of a loop that is none; empty if it may be one."""
    kind = type_of(schema)
    if schema is None or kind in ("", "array"):
        return ""
    return f"forEach needs a list, and '{items[:100]}' is {NAMES[kind]}: {_instead(items, schema, kind)}"


def unfit(reference: Reference, schema: Schema | None, spec: ToolSpec) -> str:
    """What to write for a reference that is all of an argument of another type; empty if it may fit."""
    kind, wanted = type_of(schema), _wanted(spec, reference)
    if schema is None or not kind or not wanted or _FITS.get(kind, frozenset((kind,))) & wanted:
        return ""
    name, text = reference.place[0], reference.text[:100]
    needed = " or ".join(KINDS[each] for each in KINDS if each in wanted)
    said = f"'{name}' should be {needed}, and '{text}' is {NAMES[kind]}"
    if "array" in wanted:
        return f"{said}: {_instead(text, schema, kind)}"
    inside = f": as a text it is written {{{{{text.removeprefix('$')}}}}}" if "string" in wanted else ""
    return f"{said}{inside}"


def _wanted(spec: ToolSpec, reference: Reference) -> frozenset[str]:
    """The types that an argument may have; empty if that is not known, or the reference is a part of it."""
    fields = spec.args_schema.get("properties")
    if not reference.whole or len(reference.place) != 1 or not isinstance(fields, Mapping):
        return frozenset()
    found = set[str]()
    schema = fields.get(reference.place[0])
    options = schema.get("anyOf", [schema]) if isinstance(schema, Mapping) else []
    for option in options if isinstance(options, list) else []:
        kind: Any = option.get("type") if isinstance(option, Mapping) else None
        if not isinstance(kind, str) or kind not in NAMES:
            return frozenset()
        found.add(kind)
    return frozenset(found)


def _instead(text: str, schema: Schema, kind: str) -> str:
    """How to get a list."""
    fields = schema.get("properties")
    if kind != "object":
        return _LIST
    known = fields if isinstance(fields, Mapping) else {}
    lists = [name for name, each in known.items() if isinstance(each, Mapping) and type_of(each) == "array"]
    if lists:
        return f"its lists are {', '.join(lists[:8])}; write {text}.{lists[0]}"
    return "take a field of it that is a list, or values(OBJECT), keys(OBJECT)"

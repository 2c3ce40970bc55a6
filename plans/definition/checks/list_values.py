"""References to a field of a list that a loop gives: null whatever runs, so that the step that has them fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plansurvive.plans.definition.checks.types import LIST_OF, Schema
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.references import Reference

_SEGMENT = re.compile(r"\.?(?P<field>[A-Za-z_]\w*)|\.?\"(?P<quoted>[^\"\\]+)\"|\[-?\d+\]")
_OF_ANY = frozenset(("field", "index", "slice", "current", "identity", "multi_select_dict", "multi_select_list"))
_OF_CHILDREN = frozenset(("subexpression", "index_expression", "pipe"))
_OF_FIRST = frozenset(("projection", "filter_projection", "value_projection", "flatten"))
_SENTENCES = {
    "items": "the value of the loop '{0}' is a list; for all items write {1}, for the first {2}",
    "rounds": "the value of '{0}' is the list of its rounds (`keep: all`); for all of them write {1}, for the last {2}",
}
_ONE = {"items": "[0]", "rounds": "[-1]"}


def field_of_list(reference: Reference, schema: Schema) -> str:
    """What to write for a reference that takes a field of the list of a loop; empty if it may have a value.

    `schema`: of the value of its root.
    """
    found = _split(reference.path, schema)
    if found is None:
        return ""
    before, kind, rest = found
    try:
        if not _keeps_null(compiled(rest).parsed):
            return ""
    except BadExpression:
        return ""
    place = reference.root + (f".{before}" if before and not before.startswith("[") else before)
    each, one = (f"{place}{which}.{rest}" for which in ("[*]", _ONE[kind]))
    return f"'{reference.text}': {_SENTENCES[kind].format(place, reference.alike(each), reference.alike(one))}"


def _split(path: str, schema: Schema) -> tuple[str, str, str] | None:
    """The path to the list, of what it is one, and the path behind it, which begins with a field; or None."""
    end, here = 0, schema
    while (segment := _SEGMENT.match(path, end)) is not None:
        name = segment["field"] or segment["quoted"]
        if name is not None and LIST_OF in here:
            return path[:end], str(here[LIST_OF]), path[end:].removeprefix(".")
        fields = here.get("properties")
        inner = here.get("items") if name is None else fields.get(name) if isinstance(fields, Mapping) else None
        if not isinstance(inner, Mapping):
            return None
        end, here = segment.end(), inner
    return None


def _keeps_null(node: Mapping[str, Any]) -> bool:
    """Whether an expression gives null for null."""
    kind, children = node["type"], node.get("children", [])
    if kind in _OF_CHILDREN:
        return all(map(_keeps_null, children))
    return kind in _OF_ANY or (kind in _OF_FIRST and _keeps_null(children[0]))

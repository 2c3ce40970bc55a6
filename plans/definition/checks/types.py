"""What an expression gives, as far as schemas tell: a walk over parsed JMESPath finds fields that cannot exist.

A schema is a JSON Schema, of which only the plain parts count; None is a value of which nothing is known. An object
with `additionalProperties: false` is closed: it has no other fields. Nothing is evaluated, and nothing raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plansurvive.plans.expressions.conditions import arguments_of, call_of, filter_instead

Schema = Mapping[str, Any]
Lookup = Callable[[str], "Schema | None"]
"""The schema of what a name at the beginning of an expression stands for."""
LIST_OF = "plans:listOf"
"""In the schema of a list that a construct gives whatever runs: `items` of a loop, or `rounds`."""

NAMES = {
    "string": "a text", "integer": "a number", "number": "a number", "boolean": "true or false", "null": "null",
    "array": "a list", "object": "an object",
}  # fmt: skip
"""The types of JSON Schema, as values of them are called."""
_COMBINING = frozenset(("anyOf", "oneOf", "allOf", "$ref", "not", "if", "patternProperties"))
_NUMBERS = frozenset(("integer", "number"))
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_BOOLEANS = {"boolean": ("true", "false")}
_RESULTS = {
    "length": "integer", "contains": "boolean", "starts_with": "boolean", "ends_with": "boolean", "join": "string",
    "to_string": "string", "type": "string", "keys": "array", "abs": "number", "ceil": "number", "floor": "number",
    "sum": "number", "avg": "number",
}  # fmt: skip
"""Functions whose results have one type."""


class Mistake(NamedTuple):
    """What an expression can never give, and why."""

    text: str
    is_closed: bool = False
    """Whether it follows from a closed object, so that there is no doubt."""
    fails: bool = False
    """Whether evaluating it fails for certain."""


class Walk:
    """One walk over an expression."""

    def __init__(self, root: Lookup, near: Callable[[str, list[str]], str]) -> None:
        self._root, self._near = root, near
        self.mistakes: list[Mistake] = []

    def of(self, node: Mapping[str, Any], here: Schema | None = None, is_top: bool = True) -> Schema | None:
        """The schema of what a node gives. `here`: of the value that it looks at; `is_top`: names are looked up."""
        kind, children = node["type"], node.get("children", [])
        match kind:
            case "field":
                return self._root(str(node["value"])) if is_top else self._field(here, str(node["value"]))
            case "literal":
                return _of_value(node["value"])
            case "current" | "identity":
                return here
            case "pipe" if children[1]["type"] == "field":
                return self._filter(self.of(children[0], here, is_top), str(children[1]["value"]))
            case "pipe":
                return self._pipe(children, here, is_top)
            case "subexpression":
                return self._chain(children, here, is_top)
            case "index_expression":
                return self._index(children, here, is_top)
            case "projection" | "filter_projection":
                return self._projection(node, here, is_top)
            case "flatten":
                return _flat(self.of(children[0], here, is_top))
            case "comparator":
                return self._comparison(node, here, is_top)
            case "not_expression":
                self.of(children[0], here, is_top)
                return {"type": "boolean"}
        return self._other(node, here, is_top)

    def _chain(self, children: list[Any], here: Schema | None, is_top: bool) -> Schema | None:
        found = self.of(children[0], here, is_top)
        for child in children[1:]:
            found = self.of(child, found, is_top=False)
        return found

    def _pipe(self, children: list[Any], here: Schema | None, is_top: bool) -> Schema | None:
        found, before = self.of(children[0], here, is_top), len(self.mistakes)
        result = self.of(children[1], found, is_top=False)
        if type_of(found) == "boolean" and len(self.mistakes) > before:
            del self.mistakes[before:]
            self._say("`|` gives what is before it to what is behind it; or is written ||")
        return result

    def _filter(self, schema: Schema | None, name: str) -> Schema | None:
        """A name alone behind `|`: a field of the value before it, or taken for a filter."""
        fields = schema.get("properties") if schema is not None else None
        meant = "" if isinstance(fields, Mapping) and name in fields else filter_instead(name)
        if not meant:
            return self._field(schema, name)
        self._say(meant)
        return None

    def _index(self, children: list[Any], here: Schema | None, is_top: bool) -> Schema | None:
        found = self.of(children[0], here, is_top)
        return found if children[1]["type"] == "slice" else _items(found)

    def _projection(self, node: Mapping[str, Any], here: Schema | None, is_top: bool) -> Schema | None:
        children = node["children"]
        element = _items(self.of(children[0], here, is_top))
        if node["type"] == "filter_projection":
            self.of(children[2], element, is_top=False)
        inner = self.of(children[1], element, is_top=False)
        return {"type": "array", "items": inner} if inner is not None else {"type": "array"}

    def _other(self, node: Mapping[str, Any], here: Schema | None, is_top: bool) -> Schema | None:
        kind, children = node["type"], node.get("children", [])
        if kind == "expref":
            return None  # looks at the elements of another argument
        if kind == "value_projection":
            self.of(children[0], here, is_top)
            return None
        if kind == "multi_select_dict":
            fields = {str(pair["value"]): self.of(pair["children"][0], here, is_top) for pair in children}
            return {"type": "object", "properties": fields, "additionalProperties": False}
        found = [self.of(child, here, is_top) for child in children if isinstance(child, dict)]
        if kind == "function_expression":
            self._count(str(node["value"]), len(children))
            result = _RESULTS.get(str(node["value"]))
            return {"type": result} if result else None
        if kind in ("and_expression", "or_expression") and len({type_of(each) for each in found}) == 1:
            return found[0] if type_of(found[0]) == "boolean" else None
        return {"type": "array"} if kind == "multi_select_list" else None

    def _count(self, name: str, given: int) -> None:
        """A function with too few or too many values, such as a method of other languages."""
        needed, takes_more = arguments_of(name)
        if given < needed or (given > needed and not takes_more):
            example = call_of(name)
            least = "at least " if takes_more else ""
            text = f"{name} takes {least}{needed} value{'s' if needed > 1 else ''}, and is given {given}: {example}"
            self.mistakes.append(Mistake(text, fails=True))

    def _field(self, schema: Schema | None, name: str) -> Schema | None:
        kind = type_of(schema)
        if schema is None or not kind:
            return None
        if kind != "object":
            hints = {
                "array": f"; write [0].{name}, or [*].{name} for all",
                "boolean": f"; for !x.{name} write !(x.{name})",
            }
            hint = hints.get(kind, "; leave it out")
            self.mistakes.append(Mistake(f"there is no '{name}' here: the value is {NAMES[kind]}{hint}", False))
            return None
        fields, more = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(fields, Mapping) and name in fields:
            found = fields[name]
            return found if isinstance(found, Mapping) else None
        if isinstance(more, Mapping):
            return more
        if isinstance(fields, Mapping) and fields and more is not True:
            known = list(map(str, fields))
            hint = self._near(name, known) or f"; it has {', '.join(known[:12])}"
            self.mistakes.append(Mistake(f"the value has no field '{name}'{hint}", more is False))
        return None

    def _comparison(self, node: Mapping[str, Any], here: Schema | None, is_top: bool) -> Schema | None:
        left, right = (type_of(self.of(child, here, is_top)) for child in node["children"])
        operator = str(node["value"])
        if operator in ("eq", "ne"):
            if left and right and left != right and not {left, right} <= _NUMBERS and "null" not in (left, right):
                says = "never true" if operator == "eq" else "always true"
                what = f"the comparison is {says}: {NAMES[left]} is compared with {NAMES[right]}"
                self._say(f"{what}{_other_literal(node['children'], (left, right))}")
        else:
            wrong = next((each for each in (left, right) if each and each not in _NUMBERS), "")
            if wrong:
                self._say(f"only numbers can be compared by size, and one side is {NAMES[wrong]}: this is never true")
        return {"type": "boolean"}

    def _say(self, text: str) -> None:
        self.mistakes.append(Mistake(text, False))


def _other_literal(children: list[Any], kinds: tuple[str, str]) -> str:
    """What to write instead of the literal in a comparison with a value of another type; empty if nothing is meant."""
    for child, other in zip(children, reversed(kinds), strict=True):
        value = child.get("value") if child["type"] == "literal" else None
        if isinstance(value, str) and (
            (other in _NUMBERS and _NUMBER.fullmatch(value)) or value in _BOOLEANS.get(other, ())
        ):
            return f"; write `{value}`, in backticks"
        if other == "string" and isinstance(value, bool | int | float):
            return f"; write '{json.dumps(value)}', in single quotes"
    return ""


def type_of(schema: Schema | None) -> str:
    """The one type of a schema; empty if it has several, or none is known."""
    kind = schema.get("type") if schema is not None else None
    return kind if isinstance(kind, str) and kind in NAMES and schema and not _combines(schema) else ""


def _combines(schema: Schema) -> bool:
    return not _COMBINING.isdisjoint(schema)


def _items(schema: Schema | None) -> Schema | None:
    """The schema of a list's items; None if it is not known to be a list."""
    found = schema.get("items") if schema is not None and type_of(schema) == "array" else None
    return found if isinstance(found, Mapping) else None


def _flat(schema: Schema | None) -> Schema | None:
    """The schema of a list whose items that are lists became several items."""
    items = _items(schema)
    if items is None or not type_of(items):
        return {"type": "array"}
    return items if type_of(items) == "array" else schema


def _of_value(value: Any) -> Schema | None:
    kinds: list[tuple[type, str]] = [(bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")]
    return next(
        ({"type": name} for kind, name in kinds if isinstance(value, kind)), {"type": "null"} if value is None else None
    )

"""What is said of a schema that is no JSON Schema, where fields were written in place of keywords: `{bugs: integer}`.

JSON Schema ignores what it does not know, so such a schema fits every value. Asked only before a plan or an agent
starts: one that began before must again when its history is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from plansurvive.plans.definition.bounded_schema import parts_of
from plansurvive.plans.definition.foreign_names import type_named
from plansurvive.plans.definition.near_names import Hints

KEYWORDS = frozenset(Draft202012Validator.VALIDATORS) | {
    "$anchor", "$comment", "$defs", "$id", "$schema", "additionalItems", "contentEncoding", "contentMediaType",
    "contentSchema", "default", "definitions", "dependencies", "deprecated", "description", "else", "example",
    "examples", "id", "maxContains", "minContains", "nullable", "readOnly", "then", "title", "writeOnly",
}  # fmt: skip
"""Those that validate, those that say something to people, and some of earlier drafts and OpenAPI."""
_TEXTS = ("title", "description", "id", "default", "example")
"""Keywords whose values are texts, and which may be meant as fields."""
_SHOWN = 300


def no_keywords(schema: Mapping[str, Any]) -> str:
    """Which names in a valid schema are no keywords where there must be some, and what to write; empty: none are."""
    hints = Hints()
    for place, part in parts_of(schema):
        unknown = _unknown(part)
        if not unknown:
            continue
        at = ".".join(each.replace("~1", "/").replace("~0", "~") for each in place.split("/")[1:])
        names = ", ".join(f"'{name[:40]}'" for name in unknown[:8])
        are = f"{f'{at}: ' if at else ''}{names} {'is not a keyword' if len(unknown) == 1 else 'are not keywords'}"
        has_others = len(part) > len(unknown)
        if has_others and (near := hints.near(unknown[0], KEYWORDS)):
            return f"{are} of JSON Schema; did you mean '{near}'?"
        if all(_is_field(part[name], is_sure=has_others) for name in unknown):
            rest = {name: value for name, value in part.items() if name not in unknown and name != "type"}
            fields = {**(rest.pop("properties", None) or {}), **{name: part[name] for name in unknown}}
            written = _flow({"type": "object", **rest, "properties": _Fields(fields)})
            return f"{are} of JSON Schema; for fields write {written}"
        if not has_others:
            return f"{are} of JSON Schema, which has `type`, `properties`, `items`, `enum` and others"
    return ""


def _unknown(part: Mapping[str, Any]) -> list[str]:
    """The names that are no keywords; with `title: string` and the like, if nothing else is there."""
    unknown = [name for name in part if name not in KEYWORDS and not str(name).startswith("x-")]
    texts = [name for name in _TEXTS if isinstance(part.get(name), str) and type_named(part[name])]
    return [*unknown, *texts] if len(unknown) + len(texts) == len(part) else unknown


class _Fields(dict[str, Any]):
    """Fields with what was written for the schema of each."""


def _is_field(value: Any, *, is_sure: bool = True) -> bool:
    """Whether a value may be meant as the schema of a field; any text may, unless it must be sure."""
    if isinstance(value, list):
        return len(value) == 1 and _is_field(value[0], is_sure=is_sure)
    return isinstance(value, Mapping) or (isinstance(value, str) and (not is_sure or bool(type_named(value))))


def _flow(value: Any) -> str:
    """A schema in one line, as YAML has it."""
    if isinstance(value, _Fields):
        return "{" + ", ".join(f"{name}: {_meant(each)}" for name, each in value.items()) + "}"
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else str(value)


def _meant(value: Any) -> str:
    """The schema of a field, of what was written for it."""
    if isinstance(value, str):
        kind = type_named(value)
        return f"{{type: {kind}}}" if kind else f"{{type: string, description: {value[:80]}}}"
    if isinstance(value, list):
        return f"{{type: array, items: {_meant(value[0])}}}"
    if not value or KEYWORDS & value.keys():
        return _flow(value)
    return _flow({"type": "object", "properties": _Fields(value)}) if all(map(_is_field, value.values())) else "{...}"

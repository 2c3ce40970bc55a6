"""What kind of form field a JSON schema asks for. One rule for the terminal and for the web page.

Schemas come from models and other people: nothing here raises, follows a reference more than MAX_REFERENCES times, or
leaves the schema. What is not understood is of kind `json`, a field in which the value is written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

Kind = Literal["text", "integer", "number", "choice", "list", "object", "json"]
Schema = Mapping[str, Any]
MAX_REFERENCES = 10
"""References that are followed from one schema to the next."""
_NULL = {"const": None}
_BY_TYPE: dict[str, Kind] = {"string": "text", "integer": "integer", "number": "number"}


class Choice(NamedTuple):
    """One of the values that a schema allows."""

    value: Any
    title: str = ""
    """What its author calls it; empty: by its value."""


class FieldKind(NamedTuple):
    """What a schema asks for."""

    kind: Kind
    schema: Schema
    """Local references followed, and without the alternative null."""
    choices: tuple[Choice, ...] = ()
    nullable: bool = False


def kind_of(schema: Any, root: Schema | None = None) -> FieldKind:
    """The kind of field for values of a schema. `root`: the schema that its `$ref`s lead into; default: itself."""
    plain, nullable = _plain(schema, root if root is not None else schema)
    choices = choices_of(plain)
    nullable = nullable or any(choice.value is None for choice in choices)
    if choices:
        return FieldKind("choice", plain, choices, nullable)
    given = plain.get("type")
    if any(name in plain for name in ("anyOf", "oneOf", "allOf", "not", "if", "$ref", "const", "enum")):
        return FieldKind("json", plain, (), nullable)
    if given == "object" and _properties(plain):
        return FieldKind("object", plain, (), nullable)
    if given == "array" and isinstance(plain.get("items"), Mapping) and "prefixItems" not in plain:
        return FieldKind("list", plain, (), nullable)
    kind = _BY_TYPE.get(given, "json") if isinstance(given, str) else "json"
    return FieldKind(kind, plain, (), nullable)


def choices_of(schema: Schema) -> tuple[Choice, ...]:
    """The values that a schema allows, if it lists them: `enum`, `const`, `oneOf` of constants, or a boolean."""
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return tuple(Choice(value) for value in listed)
    if "const" in schema:
        return (Choice(schema["const"]),)
    options = schema.get("oneOf", schema.get("anyOf"))
    options = [_NULL if each == {"type": "null"} else each for each in options] if isinstance(options, list) else []
    if options and all(isinstance(each, Mapping) and "const" in each for each in options):
        return tuple(Choice(each["const"], str(each.get("title", each.get("description", "")))) for each in options)
    return (Choice(True), Choice(False)) if schema.get("type") == "boolean" else ()


def is_one_of(choices: Sequence[Choice], value: Any) -> bool:
    """Whether a value is one of the choices: 1 is not true."""
    text = json.dumps(value, sort_keys=True, default=str)
    return any(json.dumps(choice.value, sort_keys=True, default=str) == text for choice in choices)


def properties_of(schema: Schema) -> dict[str, Any]:
    """The fields of an object, by name."""
    return dict(_properties(schema))


def required_of(schema: Schema) -> frozenset[str]:
    """Names of the fields that an object must have."""
    names = schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _properties(schema: Schema) -> Schema:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _plain(schema: Any, root: Any) -> tuple[Schema, bool]:
    """The schema with what it refers to in its place, and whether null is allowed beside it."""
    nullable = False
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}, nullable
        if "$ref" in schema:
            found = _at(root, schema["$ref"])
            if found is None:
                return schema, nullable
            schema = {**found, **{name: part for name, part in schema.items() if name != "$ref"}}
            continue
        given, rest = schema.get("type"), None
        if isinstance(given, list):
            rest = [each for each in given if each != "null"]
            schema = {**schema, "type": rest[0] if len(rest) == 1 else rest}
            nullable = nullable or rest != given
        inner = _only(schema)
        if inner is None:
            return schema, nullable
        name, part, is_nullable = inner
        nullable = nullable or is_nullable
        schema = {**{key: each for key, each in schema.items() if key != name}, **part}
    return schema, nullable


def _only(schema: Schema) -> tuple[str, Schema, bool] | None:
    """The only alternative of `anyOf`, `oneOf`, `allOf` beside null: keyword, alternative, whether null is one too."""
    for name in ("anyOf", "oneOf", "allOf"):
        options = schema.get(name)
        if not isinstance(options, list):
            continue
        others = [each for each in options if not (isinstance(each, Mapping) and each.get("type") == "null")]
        if len(others) == 1 and isinstance(others[0], Mapping) and not (name == "oneOf" and "const" in others[0]):
            return name, others[0], len(others) < len(options)
    return None


def _at(root: Any, reference: Any) -> Schema | None:
    """The part of a schema that a `#/...` reference means; None if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    part = root
    for name in unquote(reference[1:]).split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        part = part.get(key) if isinstance(part, Mapping) else None
    return part if isinstance(part, Mapping) else None

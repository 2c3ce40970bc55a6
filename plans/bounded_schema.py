"""JSON Schemas of strangers, held against answers of strangers, in bounded time.

A plan's author or a model writes the schema, a model the answer, and both meet inside a workflow, whose worker serves
others too. Three things can take for ever there: patterns that backtrack, references that fan out, and comparing many
items with each other. So patterns are RE2's, which takes time in proportion to the text; every keyword that is applied
counts, until there were too many; items are compared by their text. What would lead around that is refused. The count
is the same in every replay (FAULTS T16, T17).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

MOST = 30_000
"""Keywords applied to one answer; those with long values or to long texts count more. Less than half a second."""
PORTION = 100
"""Characters or items that count as much as one keyword."""
UNSUPPORTED = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef"})
"""Keywords that look at other parts of the schema by themselves, uncounted."""
DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose values are no schemas."""
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose values are schemas by name."""
QUIET = re2.Options()
QUIET.log_errors = False  # it would write them to standard error

Schema = dict[str, Any]
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooMuch(Exception):
    """The schema is too costly for this answer."""


def bounded_problem(schema: Any) -> str:
    """What keeps a valid schema from being applied in bounded time; empty when nothing does."""
    for part in _parts(schema):
        unsupported = sorted(UNSUPPORTED & part.keys())
        if unsupported:
            return f"{unsupported[0]} is not supported; use additionalProperties or items"
        for pattern in (*([part["pattern"]] if "pattern" in part else []), *part.get("patternProperties", {})):
            try:
                re2.compile(pattern, options=QUIET)
            except re2.error as error:
                why = error.args[0].decode()
                return f"pattern {pattern[:100]!r}: {why}; look-arounds and back-references are not supported"
    return ""


def errors(schema: Any, value: Any) -> Iterator[ValidationError]:
    """What in a value is not as the schema asks. Raises TooMuch, and anything where a reference leads to no schema."""
    left = MOST

    def counted(keyword: Keyword) -> Keyword:
        def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            nonlocal left
            left -= 1 + _size(value) // PORTION + _size(instance) // PORTION
            if left < 0:
                raise TooMuch
            yield from keyword(validator, value, instance, schema) or ()

        return apply

    keywords = {name: counted(keyword) for name, keyword in (Draft202012Validator.VALIDATORS | _OWN).items()}
    bounded: Any = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    found: Iterator[ValidationError] = bounded(_of_one_dialect(schema), registry=Registry()).iter_errors(value)
    return found


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and every schema in it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for name, value in schema.items():
        if name in NAMED and isinstance(value, Mapping):
            inner = list(value.values())
        else:
            inner = [] if name in DATA else value if isinstance(value, list) else [value]
        for part in inner:
            yield from _parts(part)


def _of_one_dialect(value: Any) -> Any:
    """A copy in which nothing names its dialect: jsonschema would go on there with a validator that counts nothing."""
    if isinstance(value, list):
        return [_of_one_dialect(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    named = {name for name, item in value.items() if name == "$schema" and isinstance(item, str)}
    return {name: _of_one_dialect(item) for name, item in value.items() if name not in named}


def _matches(pattern: str, text: str) -> bool:
    return re2.search(pattern, text, options=QUIET) is not None


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern[:100]!r}")


def _pattern_properties(validator: Any, patterns: Schema, instance: Any, _: Any) -> Iterator[ValidationError]:
    for name, value in instance.items() if validator.is_type(instance, "object") else ():
        for pattern, schema in patterns.items():
            if _matches(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    for name, value in instance.items() if validator.is_type(instance, "object") else ():
        if name in schema.get("properties", {}):
            continue
        if any(_matches(pattern, name) for pattern in schema.get("patternProperties", {})):
            continue
        if allowed is False:
            yield ValidationError(f"{name!r} is not expected here")
        elif isinstance(allowed, Mapping):
            yield from validator.descend(value, allowed, path=name)


def _unique_items(validator: Any, unique: bool, instance: Any, _: Any) -> Iterator[ValidationError]:
    if unique and validator.is_type(instance, "array"):
        texts = {json.dumps(_normal(item), sort_keys=True) for item in instance}
        if len(texts) < len(instance):
            yield ValidationError("some items are alike")


def _normal(value: Any) -> Any:
    """The value with whole numbers written alike: to JSON Schema, 1.0 and 1 are one number."""
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refused(*_: Any) -> Iterator[ValidationError]:
    raise TooMuch


_OWN: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    **dict.fromkeys(UNSUPPORTED, _refused),
}

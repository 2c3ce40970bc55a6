"""JSON Schemas of strangers, applied to answers of strangers, within limits.

A plan's author or a model writes the schema, a model the answer. Patterns that backtrack, references that fan out, and
work that grows with schema times answer could hold a worker up without end. So:

- a schema is small, and only such parts of it are used as were looked at before: references lead to these parts alone;
- patterns are RE2's, which takes time in proportion to text and pattern; Python's would also hold the GIL;
- before every keyword, match and error the caller says whether to go on: by the clock in an activity, by a count in
  a workflow, where a replay must come to the same verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

MAX_LENGTH = 64 * 1024
"""Characters of a schema, as JSON."""
MAX_PARTS = 1_000
"""Objects in a schema. Each takes the check of the schema a sixth of a millisecond."""
MAX_INSTRUCTIONS = 50_000
"""Of all patterns of a schema, as RE2 counts; two million take a second to make."""
MAX_MATCH = 50_000_000
"""Characters times RE2 instructions of one match: a second at RE2's slowest, during which the GIL is free."""
HOLDING_ONE = frozenset({"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"})
HOLDING_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
HOLDING_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
UNSUPPORTED = frozenset({
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
"""Keywords that lead to, or look at, other parts of the schema by ways of their own."""
RE2 = re2.Options()
RE2.log_errors = False  # it would write them to standard error
RE2.max_mem = 512 * 1024  # a pattern of ten characters can take 0.2 s to make, and 8 MB
_OF_PERL = re.compile(r"\(\?|\\[1-9]")

Schema = dict[str, Any]
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
Matchers = Mapping[str, Any]
GoOn = Callable[[], bool]
"""Whether there is time, or count, for one more keyword."""


class Unbounded(Exception):
    """The schema cannot be applied in bounded time; the text says why."""


class TooMuch(Exception):
    """The schema is too costly for this answer."""


def size_problem(schema: Any) -> str:
    """What makes a schema too large to look at; empty when nothing does."""
    length, parts, pending = len(json.dumps(schema)), 0, [schema]
    while pending:
        part = pending.pop()
        parts += isinstance(part, Mapping)
        pending += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
    if length > MAX_LENGTH or parts > MAX_PARTS:
        return f"the schema is too large: at most {MAX_LENGTH} characters and {MAX_PARTS} objects"
    return ""


def matchers_of(schema: Any) -> Matchers:
    """The patterns of a valid schema, compiled. Raises Unbounded for one that cannot be applied in bounded time."""
    parts = dict(_parts(schema, ""))
    for place, part in parts.items():
        inner = {"$schema", "$id"} if place else set()
        unsupported = sorted((UNSUPPORTED | inner) & part.keys())
        if unsupported:
            raise Unbounded(f"{unsupported[0]} is not supported{' within a schema' if inner else ''}; leave it out")
        reference = part.get("$ref")
        if reference is not None and not (reference.startswith("#") and unquote(reference[1:]) in parts):
            raise Unbounded(f"$ref {reference[:100]!r} leads to no part of the schema; write '#/$defs/NAME'")
    found: dict[str, Any] = {}
    instructions = 0
    for pattern in (pattern for part in parts.values() for pattern in _patterns(part)):
        if pattern in found:
            continue
        try:
            found[pattern] = _compiled(pattern)
        except re2.error as error:
            why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
            more = "; look-arounds and back-references are not supported" if _OF_PERL.search(why) else ""
            raise Unbounded(f"pattern {pattern[:100]!r}: {why}{more}") from None
        instructions += found[pattern].programsize
        if instructions > MAX_INSTRUCTIONS:
            raise Unbounded(f"the patterns are too large together, from {pattern[:100]!r} on; write shorter ones")
    return found


def errors(schema: Any, value: Any, go_on: GoOn) -> Iterator[ValidationError]:
    """What in a value is not as the schema asks. Raises TooMuch, and Unbounded as `matchers_of`."""

    def limited(keyword: Keyword) -> Keyword:
        def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            if not go_on():
                raise TooMuch
            for error in keyword(validator, value, instance, schema) or ():
                if not go_on():  # one `required` can hold thousands of errors
                    raise TooMuch
                yield error

        return apply

    own = _own(_matching(matchers_of(schema), go_on))
    keywords = {name: limited(keyword) for name, keyword in (Draft202012Validator.VALIDATORS | own).items()}
    bounded: Any = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    # With a dialect of its own, jsonschema would go on with a validator without limits wherever '#' leads here.
    bare = {name: part for name, part in schema.items() if name not in ("$schema", "$id")}
    found: Iterator[ValidationError] = bounded(bare, registry=Registry()).iter_errors(value)
    return found


def _parts(schema: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and every schema in it, by the JSON Pointer that leads there."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for name, value in schema.items():
        here = f"{place}/{_escaped(name)}"
        if name in HOLDING_ONE:
            yield from _parts(value, here)
        elif name in HOLDING_LIST:
            for index, part in enumerate(value):
                yield from _parts(part, f"{here}/{index}")
        elif name in HOLDING_NAMED:
            for inner, part in value.items():
                yield from _parts(part, f"{here}/{_escaped(inner)}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _patterns(part: Mapping[str, Any]) -> list[str]:
    return [*([part["pattern"]] if "pattern" in part else []), *part.get("patternProperties", {})]


def _compiled(pattern: str) -> Any:
    """The pattern for RE2, which writes a character's number in another way than JavaScript."""
    return re2.compile(re.sub(r"\\(?:u([0-9a-fA-F]{4})|.)", _in_braces, pattern, flags=re.DOTALL), options=RE2)


def _in_braces(found: re.Match[str]) -> str:
    return f"\\x{{{found[1]}}}" if found[1] else found[0]


def _matching(matchers: Matchers, go_on: GoOn) -> Callable[[str, str], bool]:
    """Whether a pattern of the schema is found in a text."""

    def matches(pattern: str, text: str) -> bool:
        matcher = matchers[pattern]
        if not go_on() or len(text) * matcher.programsize > MAX_MATCH:
            raise TooMuch
        return matcher.search(text) is not None

    return matches


def _own(matches: Callable[[str, str], bool]) -> dict[str, Keyword]:
    """The keywords that are not left to jsonschema: those with patterns, and the one that compares all with all."""

    def by_pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not matches(pattern, instance):
            yield ValidationError(f"{instance[:100]!r} does not match {pattern[:100]!r}")

    def pattern_properties(validator: Any, patterns: Schema, instance: Any, _: Any) -> Iterator[ValidationError]:
        for name, value in instance.items() if validator.is_type(instance, "object") else ():
            for pattern, schema in patterns.items():
                if matches(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)

    def additional(validator: Any, allowed: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
        for name, value in instance.items() if validator.is_type(instance, "object") else ():
            if name in schema.get("properties", {}):
                continue
            if any(matches(pattern, name) for pattern in schema.get("patternProperties", {})):
                continue
            if allowed is False:
                yield ValidationError(f"{name[:100]!r} is not expected here")
            elif isinstance(allowed, Mapping):
                yield from validator.descend(value, allowed, path=name)

    def unique(validator: Any, is_asked_for: bool, instance: Any, _: Any) -> Iterator[ValidationError]:
        if is_asked_for and validator.is_type(instance, "array"):
            texts = {json.dumps(_normal(item), sort_keys=True) for item in instance}
            if len(texts) < len(instance):
                yield ValidationError("some items are alike")

    return {
        "pattern": by_pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "uniqueItems": unique,
    }


def _normal(value: Any) -> Any:
    """The value with whole numbers written alike: to JSON Schema, 1.0 and 1 are one number."""
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value

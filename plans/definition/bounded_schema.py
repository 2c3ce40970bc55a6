"""Validates untrusted data against an untrusted JSON Schema, with bounded time and memory.

A plan's author or a model writes the schema, a model writes the answer. Backtracking patterns (ReDoS), recursive
references and work proportional to schema times answer could block a worker indefinitely. Therefore:

- the size of a schema is limited, and a `$ref` may only lead to a part of it that was checked;
- patterns are compiled with RE2, whose time is linear in text and pattern; Python's `re` would also hold the GIL;
- before each keyword, match and error the caller decides whether to continue: by the clock in an activity, by a count
  in a workflow, where a replay must reach the same verdict.
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
"""Maximum length of a schema, in characters of JSON."""
MAX_PARTS = 1_000
"""Maximum number of objects in a schema. Checking the schema takes 1/6 ms per object."""
MAX_INSTRUCTIONS = 50_000
"""Maximum RE2 program size of all patterns of a schema; compiling 2 million instructions takes a second."""
MAX_MATCH = 50_000_000
"""Maximum characters times RE2 instructions of one match: a second in the worst case, with the GIL released."""
HOLDING_ONE = frozenset({"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"})
HOLDING_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
HOLDING_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
UNSUPPORTED = frozenset({
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
"""Keywords that reach other parts of the schema in ways that the checks do not cover."""
RE2 = re2.Options()
RE2.log_errors = False  # they would be logged to standard error
RE2.max_mem = 512 * 1024  # a ten-character pattern can take 0.2 s and 8 MB to compile
_OF_PERL = re.compile(r"\(\?|\\[1-9]")

Schema = dict[str, Any]
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
Matchers = Mapping[str, Any]
GoOn = Callable[[], bool]
"""Returns whether to continue: whether time, or count, is left."""


class Unbounded(Exception):
    """The schema cannot be applied in bounded time; the message says why."""


class TooMuch(Exception):
    """Checking this answer against the schema exceeds the limit."""


def size_problem(schema: Any) -> str:
    """Why a schema is too large; empty if it is not."""
    length, parts, pending = len(json.dumps(schema)), 0, [schema]
    while pending:
        part = pending.pop()
        parts += isinstance(part, Mapping)
        pending += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
    if length > MAX_LENGTH or parts > MAX_PARTS:
        return f"the schema is too large: at most {MAX_LENGTH} characters and {MAX_PARTS} objects"
    return ""


def matchers_of(schema: Any) -> Matchers:
    """Compile the patterns of a valid schema. Raises Unbounded if it cannot be applied in bounded time."""
    parts = dict(parts_of(schema, ""))
    for place, part in parts.items():
        inner = {"$schema", "$id"} if place else set()
        unsupported = sorted((UNSUPPORTED | inner) & part.keys())
        if unsupported:
            raise Unbounded(f"{unsupported[0]} is not supported{' within a schema' if inner else ''}; remove it")
        reference = part.get("$ref")
        if reference is not None and not (reference.startswith("#") and unquote(reference[1:]) in parts):
            raise Unbounded(f"$ref {reference[:100]!r} does not refer to a part of this schema; write '#/$defs/NAME'")
    matchers: dict[str, Any] = {}
    instructions = 0
    for pattern in (pattern for part in parts.values() for pattern in _patterns(part)):
        if pattern in matchers:
            continue
        try:
            matchers[pattern] = _compiled(pattern)
        except re2.error as error:
            why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
            more = "; look-arounds and back-references are not supported" if _OF_PERL.search(why) else ""
            raise Unbounded(f"pattern {pattern[:100]!r}: {why}{more}") from None
        instructions += matchers[pattern].programsize
        if instructions > MAX_INSTRUCTIONS:
            raise Unbounded(f"the patterns are too large in total, from {pattern[:100]!r} on; use shorter ones")
    return matchers


def errors(schema: Any, value: Any, go_on: GoOn, all_matches: int | None = None) -> Iterator[ValidationError]:
    """The errors of a value. Raises TooMuch if `go_on` ends the check, Unbounded like `matchers_of`.

    `all_matches`: maximum characters times RE2 instructions of all matches together, where there is no clock.
    """

    def limited(keyword: Keyword) -> Keyword:
        def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            if not go_on():
                raise TooMuch
            for error in keyword(validator, value, instance, schema) or ():
                if not go_on():  # one `required` can hold thousands of errors
                    raise TooMuch
                yield error

        return apply

    own = _own(_matching(matchers_of(schema), go_on, all_matches))
    keywords = {name: limited(keyword) for name, keyword in (Draft202012Validator.VALIDATORS | own).items()}
    bounded: Any = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    # Otherwise a '#' reference to a schema with its own dialect would continue with jsonschema's unlimited validator.
    bare = {name: part for name, part in schema.items() if name not in ("$schema", "$id")}
    errors_found: Iterator[ValidationError] = bounded(bare, registry=Registry()).iter_errors(value)
    return errors_found


def parts_of(schema: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and all its subschemas, each with its JSON Pointer."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for name, value in schema.items():
        here = f"{place}/{_escaped(name)}"
        if name in HOLDING_ONE:
            yield from parts_of(value, here)
        elif name in HOLDING_LIST:
            for index, part in enumerate(value):
                yield from parts_of(part, f"{here}/{index}")
        elif name in HOLDING_NAMED:
            for inner, part in value.items():
                yield from parts_of(part, f"{here}/{_escaped(inner)}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _patterns(part: Mapping[str, Any]) -> list[str]:
    return [*([part["pattern"]] if "pattern" in part else []), *part.get("patternProperties", {})]


def _compiled(pattern: str) -> Any:
    """Compile a pattern. JavaScript's `\\uXXXX` is written `\\x{XXXX}` in RE2."""
    return re2.compile(re.sub(r"\\(?:u([0-9a-fA-F]{4})|.)", _in_braces, pattern, flags=re.DOTALL), options=RE2)


def _in_braces(match: re.Match[str]) -> str:
    return f"\\x{{{match[1]}}}" if match[1] else match[0]


def _matching(matchers: Matchers, go_on: GoOn, all_matches: int | None) -> Callable[[str, str], bool]:
    """A predicate: whether a pattern of the schema occurs in a text. Raises TooMuch."""
    spent = 0

    def matches(pattern: str, text: str) -> bool:
        nonlocal spent
        matcher = matchers[pattern]
        cost = len(text) * matcher.programsize
        spent += cost
        if not go_on() or cost > MAX_MATCH or (all_matches is not None and spent > all_matches):
            raise TooMuch
        return matcher.search(text) is not None

    return matches


def _own(matches: Callable[[str, str], bool]) -> dict[str, Keyword]:
    """Replacements for keywords of jsonschema: those with patterns, and `uniqueItems`, which is quadratic there."""

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
                yield ValidationError("some items are equal")

    return {
        "pattern": by_pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "uniqueItems": unique,
    }


def _normal(value: Any) -> Any:
    """Normalise whole numbers: in JSON Schema, 1.0 equals 1."""
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value

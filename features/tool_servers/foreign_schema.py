"""JSON Schemas of other people's servers, made fit for plans: bounded, without references, with patterns that are safe.

`usable` gives the schema that arguments are checked against. It may allow more than the server's own, which checks
again itself; it never allows less. `known_fields` gives what is known of a value, for references and conditions.

Made plain once, so that check, forms and prompts need no rule for other people's schemas; it may allow more than the
server's, never less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from plansurvive.plans.definition.bounded_schema import (
    HOLDING_LIST,
    HOLDING_NAMED,
    HOLDING_ONE,
    UNSUPPORTED,
    Unbounded,
    matchers_of,
    size_problem,
)
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.text.safe_text import safe

MAX_CHARACTERS = 32 * 1024
"""Maximum length of one schema, in characters of JSON, before and after its references were followed."""
MAX_DEPTH = 24
"""Schemas inside each other; forms and models have long given up there."""
MAX_TEXT = 1_000
"""Maximum length of a description in a schema."""
MAX_NAME = 64
"""Maximum length of an argument's name."""
Schema = dict[str, Any]
_LEFT_OUT = frozenset({
    *UNSUPPORTED, "$schema", "$id", "$comment", "$vocabulary", "$defs", "definitions", "title", "examples", "$ref",
    "contentEncoding", "contentMediaType", "contentSchema", "deprecated", "readOnly", "writeOnly", "format",
})  # fmt: skip
"""Keywords that say nothing about a value, or that the checks do not cover."""


class Unusable(Exception):
    """The schema cannot be used; the message says why."""


def usable(given: Any) -> Schema:
    """The schema for the arguments of a tool, an object. Raises Unusable."""
    made = _made(given)
    if made.get("type", "object") != "object":
        raise Unusable("its arguments are not an object")
    return {**made, "type": "object", "properties": made.get("properties", {})}


def known_fields(given: Any) -> Schema | None:
    """What an output schema tells of the value; None if nothing, or if it cannot be used."""
    try:
        found = _plain(_made(given))
    except Unusable:
        return None
    return found or None


def _made(given: Any) -> Schema:
    if not isinstance(given, Mapping):
        raise Unusable("it has no schema")
    try:
        if size_problem(given) or len(json.dumps(given)) > MAX_CHARACTERS:
            raise Unusable(f"its schema is larger than {MAX_CHARACTERS:,} characters or 1,000 parts")
        made = _Maker(given).of(given, following=("#",))
        problem = size_problem(made) or schema_problem(made)
        if problem or len(json.dumps(made)) > MAX_CHARACTERS:
            raise Unusable(f"its schema cannot be used: {safe(problem) or 'too large with its references followed'}")
    except (RecursionError, TypeError, ValueError, AttributeError) as error:
        raise Unusable("its schema is nested too deeply, or is not a JSON Schema") from error
    return made


class _Maker:
    """Makes one schema. Counts its parts, as references multiply them."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._left = root, 1_000

    def of(self, part: Any, depth: int = 0, following: tuple[str, ...] = ()) -> Schema:
        """The part with local references followed; a reference into itself is left open."""
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise Unusable("its schema is too large or nested too deeply")
        if part is False:
            return {"not": {}}
        if not isinstance(part, Mapping):
            return {}
        made: Schema = {}
        if "$ref" in part:
            name = str(part["$ref"])
            if not name.startswith("#"):
                raise Unusable(f"its schema refers to another document ({safe(name[:100])}), which is never fetched")
            if name not in following:
                made = self.of(self._at(name), depth + 1, (*following, name))
        for key, value in part.items():
            if key not in _LEFT_OUT:
                made[key] = self._keyword(key, value, depth + 1, following)
        return _safe_patterns(made)

    def _keyword(self, key: str, value: Any, depth: int, following: tuple[str, ...]) -> Any:
        if key == "additionalProperties" and isinstance(value, bool):
            return value
        if key in HOLDING_ONE:
            return self.of(value, depth, following)
        if key in HOLDING_LIST and isinstance(value, list):
            return [self.of(each, depth, following) for each in value]
        if key == "required" and isinstance(value, list):
            return [_name(each) for each in value]
        if key in HOLDING_NAMED and isinstance(value, Mapping):
            if key == "properties":
                return {_name(name): self.of(each, depth, following) for name, each in value.items()}
            return {str(name): self.of(each, depth, following) for name, each in value.items()}
        return safe(value)[:MAX_TEXT] if key == "description" and isinstance(value, str) else value

    def _at(self, pointer: str) -> Any:
        """The part that a local reference names. Raises Unusable."""
        found: Any = self._root
        for name in unquote(pointer[1:]).split("/")[1:] if pointer != "#" else ():
            key = name.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and len(key) < 6 and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise Unusable(f"its schema refers to a part of itself that is not there ({safe(pointer[:100])})")
        return found


def _name(given: Any) -> str:
    """The name of an argument: messages and prompts repeat it, so it cannot be a sentence. Raises Unusable."""
    name = str(given)
    if not 0 < len(name) <= MAX_NAME or not name.isprintable() or " " in name or safe(name) != name:
        raise Unusable(f"the name of its argument {safe(name)[:MAX_NAME]!r} is too long, or has spaces in it")
    return name


def _safe_patterns(made: Schema) -> Schema:
    """The schema without patterns that RE2 does not take: the server checks those itself."""
    if "pattern" in made and not _is_safe({"pattern": made["pattern"]}):
        del made["pattern"]
    patterns = made.get("patternProperties")
    if isinstance(patterns, dict):
        kept = {each: part for each, part in patterns.items() if _is_safe({"pattern": each})}
        if len(kept) < len(patterns):  # what they allowed must not become forbidden
            made = {name: part for name, part in made.items() if name != "additionalProperties"}
        made["patternProperties"] = kept
    return made


def _is_safe(part: Schema) -> bool:
    try:
        matchers_of(part)
    except (Unbounded, TypeError):
        return False
    return True


def _plain(schema: Mapping[str, Any]) -> Schema:
    """The parts that the checks of references understand. An object is closed only if its schema says so."""
    found: Schema = {name: schema[name] for name in ("type", "enum", "const") if name in schema}
    if isinstance(schema.get("properties"), Mapping):
        found["properties"] = {name: _plain(each) for name, each in schema["properties"].items()}
        if schema.get("additionalProperties") is False and not schema.get("patternProperties"):
            found["additionalProperties"] = False
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            found[name] = _plain(schema[name])
    if isinstance(schema.get("anyOf"), list):
        found["anyOf"] = [_plain(each) for each in schema["anyOf"]]
    if any(name in schema for name in ("oneOf", "allOf", "not", "if", "dependentSchemas")):
        return {}  # they may say more, or otherwise
    return found

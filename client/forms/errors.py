"""What is wrong with a value, by where: sentences for the fields of a form. Pure, with bounded work."""

from __future__ import annotations

from typing import Any

from jsonschema.exceptions import ValidationError

from plansurvive.client.forms.kinds import Schema
from plansurvive.client.forms.texts import is_reference
from plansurvive.client.forms.tree import FieldPath
from plansurvive.plans.definition.bounded_schema import TooMuch, Unbounded, errors

MAX_APPLIED = 20_000
"""Keywords, matches and errors of one check."""
MAX_MATCHED = 5_000_000
"""Characters times RE2 instructions of one check."""
MAX_ERRORS = 50
NEEDED = "is needed"
_TYPES = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "yes or no", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_LIMITS = {
    "minimum": "must be {} or more", "maximum": "must be {} or less", "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}", "multipleOf": "must be a multiple of {}",
    "minLength": "must have {} characters or more", "maxLength": "must have {} characters or fewer",
    "minItems": "must have {} items or more", "maxItems": "must have {} items or fewer",
    "pattern": "does not fit the pattern {}", "minProperties": "must have at least {} fields",
    "maxProperties": "must have {} fields or fewer",
}  # fmt: skip


def errors_of(schema: Schema, value: Any, *, references: bool = False) -> dict[FieldPath, str]:
    """Why a value does not fit the schema, by where; empty if it does. `references`: they stand for any value."""
    left, found = iter(range(MAX_APPLIED)), dict[FieldPath, str]()
    try:
        for error in errors(schema, value, lambda: next(left, None) is not None, MAX_MATCHED):
            for place, text in _told(error, references):
                found.setdefault(place, text)
            if len(found) >= MAX_ERRORS:
                break
    except TooMuch:
        found.setdefault((), "checking it against the schema takes too long; shorten it")
    except (Unbounded, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        found.setdefault((), f"the schema cannot be applied: {' '.join(str(error).split())[:200]}")
    return found


def _told(error: ValidationError, references: bool) -> list[tuple[FieldPath, str]]:
    if references and isinstance(error.instance, str) and is_reference(error.instance):
        return []
    place: FieldPath = tuple(error.absolute_path)
    if error.validator in ("anyOf", "oneOf"):
        branches = [each for each in error.context or () if (each.validator, each.validator_value) != ("type", "null")]
        if branches and len({each.schema_path[0] for each in branches}) == 1:
            return [pair for each in branches for pair in _told(each, references)]
    if error.validator == "required" and isinstance(error.instance, dict):
        names: Any = error.validator_value
        return [((*place, name), NEEDED) for name in names if name not in error.instance]
    return [(place, _sentence(error))]


def _sentence(error: ValidationError) -> str:
    name, given = str(error.validator), error.validator_value
    if name in ("minLength", "minItems") and given == 1:
        return NEEDED
    if name in _LIMITS:
        return _LIMITS[name].format(str(given)[:200])
    if name == "type":
        kinds = given if isinstance(given, list) else [given]
        return f"must be {' or '.join(_TYPES.get(str(each), str(each)) for each in kinds)}"
    if name in ("enum", "const"):
        return "is not one of the choices"
    if name == "uniqueItems":
        return "has the same item twice"
    return " ".join(error.message.split())[:300]

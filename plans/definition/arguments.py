"""Validates arguments against a tool's JSON Schema, field by field, in sentences that say how to fix them.

Workflow, command line and activity apply the same schema, also for tools that are registered on other workers. A field
that holds a reference is validated only once its value is known.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema.exceptions import ValidationError

from plans.definition.references import Reference, find, is_literal
from plans.model import ToolSpec


def argument_problems(spec: ToolSpec, args: Mapping[str, Any], known: Container[str] = ()) -> list[tuple[str, str]]:
    """Problems of arguments that may contain references, as (field, sentence), in a stable order."""
    errors = list(spec.validator.iter_errors(dict(args)))
    if not errors:
        return []  # the common case; searching long texts for references costs more than everything else here
    pending = [reference for reference in find(dict(args)) if not is_literal(reference, known)]
    found = [
        sentence
        for error in errors
        if not any(_waits(error, reference) for reference in pending)
        for sentence in _sentences(spec, error)
    ]
    return sorted(set(found))


def _waits(error: ValidationError, reference: Reference) -> bool:
    """Whether the error may disappear once the reference is filled in. An insertion into a text remains a string."""
    if error.validator in ("required", "additionalProperties"):
        return False
    path = tuple(error.absolute_path)
    if reference.whole:
        return reference.place[: len(path)] == path
    return reference.place == path and error.validator not in ("type", "anyOf")


def _sentences(spec: ToolSpec, error: ValidationError) -> list[tuple[str, str]]:
    path = ".".join(["args", *map(str, error.absolute_path)])
    instance: Any = error.instance
    if error.validator == "required":
        name = error.message.split("'")[1]
        return [(f"{path}.{name}", f"{spec.name} needs '{name}'; add it")]
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        known = list(schema.get("properties", {}))
        return [(f"{path}.{name}", _unknown(spec, str(name), known)) for name in instance if name not in known]
    if error.validator == "type":
        return [(path, f"{_short(instance)} is not of type {_kinds(error.validator_value)}")]
    if error.validator == "anyOf":
        options: Any = error.validator_value
        kinds = " or ".join(str(option.get("type", "value")) for option in options)
        return [(path, f"{_short(instance)} is not of type {kinds}, or out of bounds")]
    return [(path, " ".join(error.message.split())[:300])]


def _unknown(spec: ToolSpec, name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"it takes {', '.join(known) or 'nothing'}"
    return f"{spec.name} has no argument '{name}'; {hint}"


def _kinds(value: Any) -> str:
    return " or ".join(value) if isinstance(value, list) else str(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

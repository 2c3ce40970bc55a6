"""A tool's own schema applied to arguments: field by field, in sentences that say how to mend them.

The schema is JSON Schema, so a workflow, the command line and a tool's activity judge by one rule, also for tools that
are described elsewhere. A place that holds a reference is not judged before its value is known.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema.exceptions import ValidationError

from plans.definition.references import Reference, find, is_literal
from plans.model import ToolSpec


def argument_problems(spec: ToolSpec, args: Mapping[str, Any], known: Container[str] = ()) -> list[tuple[str, str]]:
    """What is wrong with arguments that may hold references, as (field, sentence), in a stable order."""
    errors = list(spec.validator.iter_errors(dict(args)))
    if not errors:
        return []  # by far the most calls; looking for references in long texts takes longer than all the rest
    pending = [reference for reference in find(dict(args)) if not is_literal(reference, known)]
    found = [
        sentence
        for error in errors
        if not any(_waits(error, reference) for reference in pending)
        for sentence in _sentences(spec, error)
    ]
    return sorted(set(found))


def _waits(error: ValidationError, reference: Reference) -> bool:
    """Whether the error may be gone once the reference is filled in; one inserted into a text stays a text."""
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
        return [(path, f"{_short(instance)} is no {_kinds(error.validator_value)}")]
    if error.validator == "anyOf":
        options: Any = error.validator_value
        kinds = " or ".join(str(option.get("type", "value")) for option in options)
        return [(path, f"{_short(instance)} is no {kinds}, or out of its bounds")]
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

"""The form an agent's final answer is to have, a JSON Schema: whether it can be used, and held against an answer.

Both come from people and models, and a workflow that fails over them would be stuck for good: what is no schema is
refused before it is asked for, a reference to elsewhere is never followed, and an answer is read as a plan file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from plans.reading import Unreadable, parse_json


def schema_problem(schema: Mapping[str, Any]) -> str:
    """What keeps a schema from being used; empty when nothing does."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"this is no JSON Schema: {f'{place}: ' if place else ''}{' '.join(error.message.split())[:300]}"
    except RecursionError:
        return "the schema is nested too deep; flatten it"
    return ""


def form_problem(schema: Mapping[str, Any], answer: str) -> str:
    """What keeps an answer from being of the form; empty when nothing does."""
    try:
        value = parse_json(answer)
        found = next(iter(Draft202012Validator(schema, registry=Registry()).iter_errors(value)), None)
    except Unreadable as error:
        return f"it must be a JSON text of the schema asked for: {error}"
    except (Unresolvable, RecursionError) as error:
        return f"the schema asked for cannot be applied: {' '.join(str(error).split())[:300]}"
    return f"{'.'.join(map(str, found.absolute_path)) or 'the whole'}: {found.message[:300]}" if found else ""


def value_of(answer: str) -> Any:
    """The value of an answer that has the form."""
    return parse_json(answer)

"""The JSON Schema of an agent's final answer: whether it can be used, and whether an answer conforms to it.

Both come from people and models, so neither function raises: what is not a schema is refused before the agent starts,
a reference to elsewhere is never followed, applying a schema has a limit (plans/definition/bounded_schema.py), and an
answer is parsed as a plan file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from plans.definition.bounded_schema import GoOn, TooMuch, Unbounded, errors, matchers_of, size_problem
from plans.definition.parsing import Unreadable, parse_json

MAX_APPLIED = 100_000
"""Keywords, matches and errors of one answer where there is no clock: in a workflow, for histories that hold no
verdict. It accepts all that was accepted when they were recorded."""


def schema_problem(schema: Mapping[str, Any]) -> str:
    """What keeps a schema from being used; empty when nothing does. Never raises."""
    try:
        if too_large := size_problem(schema):
            return too_large
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))  # patterns are RE2's
        matchers_of(schema)
    except Unbounded as error:
        return str(error)
    except SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"this is no JSON Schema: {f'{place}: ' if place else ''}{_on_one_line(error.message)}"
    except RecursionError:
        return "the schema is nested too deep; flatten it"
    except Exception as error:  # what no JSON Schema could hold, from who started a workflow with Temporal's own tools
        return f"this is no JSON Schema: {_on_one_line(error)}"
    return ""


def form_problem(schema: Mapping[str, Any], answer: str, go_on: GoOn | None = None) -> str:
    """What keeps an answer from being of the form; empty when nothing does.

    `go_on` says whether there is time left; without it, MAX_APPLIED limits the work, the same in every replay.
    """
    left = iter(range(MAX_APPLIED))
    try:
        value = parse_json(answer)
        found = next(errors(schema, value, go_on or (lambda: next(left, None) is not None)), None)
    except Unreadable as error:
        return f"it must be a JSON text of the schema asked for: {error}"
    except TooMuch:
        return "the schema asked for takes too long to apply to this answer; answer in less, or simplify the schema"
    except Exception as error:  # Unbounded, or anything, of a schema that was never checked: another version's
        return f"the schema asked for cannot be applied: {_on_one_line(error)}"
    return f"{'.'.join(map(str, found.absolute_path)) or 'the whole'}: {found.message[:300]}" if found else ""


def value_of(answer: str) -> Any:
    """The value of an answer that has the form."""
    return parse_json(answer)


def _on_one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]

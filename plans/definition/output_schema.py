"""Validates the JSON Schema of an agent's final answer, and answers against it.

Both are untrusted input from people and models. An invalid schema is rejected before the agent starts, external `$ref`s
are never followed, applying a schema has a limit (plans/definition/bounded_schema.py), and an answer is parsed under
the same limits as a plan file. Neither check raises.

Patterns run in RE2, linear in the text and without the GIL. Rejected: Python's `re`, a meter that weighed every
keyword, jsonschema-rs (bounds patterns, not references), a separate process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from plansurvive.plans.definition.bounded_schema import GoOn, TooMuch, Unbounded, errors, matchers_of, size_problem
from plansurvive.plans.definition.foreign_names import type_named
from plansurvive.plans.definition.parsing import Unreadable, parse_json
from plansurvive.plans.expressions.references import find


def written_problems(name: str, args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with the schema in an argument as it is written: its field, and why; nothing while it has
    references.
    """
    schema = args.get(name)
    why = schema_problem(schema) if isinstance(schema, dict) and not find(schema) else ""
    return [(f"args.{name}", why)] if why else []


def argument_problem(name: str, args: Mapping[str, Any]) -> str:
    """Why the schema in an argument cannot be used, with its place; empty if it can, or if there is none."""
    why = schema_problem(args.get(name) or {})
    return f"args.{name}: {why}" if why else ""


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Why a schema cannot be used; empty if it can. Never raises."""
    try:
        if too_large := size_problem(schema):
            return too_large
        Draft202012Validator.check_schema(
            schema, format_checker=FormatChecker(formats=())
        )  # patterns are checked as RE2 below
        matchers_of(schema)
    except Unbounded as error:
        return str(error)
    except SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"not a valid JSON Schema: {f'{place}: ' if place else ''}{_on_one_line(error.message)}{_instead(error)}"
    except RecursionError:
        return "the schema is nested too deeply; flatten it"
    except Exception as error:  # data that JSON cannot express, in a workflow started with Temporal's own tools
        return f"not a valid JSON Schema: {_on_one_line(error)}"
    return ""


def _instead(error: SchemaError) -> str:
    """What to write where a schema of other programs has something else; empty if that is not known."""
    place, given = list(error.absolute_path), error.instance
    if place[-1:] == ["required"] and isinstance(given, bool):
        return "; write `required: [NAME, ...]` beside `properties`"
    kind = type_named(given) if isinstance(given, str) else ""
    if place[-1:] == ["type"]:
        return f"; did you mean '{kind}'?" if kind else ""
    return f"; write {{type: {kind}}}" if kind else ""


def form_problem(schema: Mapping[str, Any], answer: str, go_on: GoOn) -> str:
    """How an answer violates the schema; empty if it conforms. Never raises.

    `go_on` returns whether there is time left.
    """
    try:
        value = parse_json(answer)
        problem = next(errors(schema, value, go_on), None)
    except Unreadable as error:
        return f"it must be JSON that conforms to the requested schema: {error}"
    except TooMuch:
        return "checking this answer against the schema takes too long; shorten the answer or simplify the schema"
    except Exception as error:  # Unbounded or other: the schema was accepted by another version
        return f"the requested schema cannot be applied: {_on_one_line(error)}"
    return f"{'.'.join(map(str, problem.absolute_path)) or 'top level'}: {problem.message[:300]}" if problem else ""


def value_of(answer: str) -> Any:
    """Parse an answer that conforms to the schema."""
    return parse_json(answer)


def _on_one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]

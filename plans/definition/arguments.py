"""Validates arguments against a tool's JSON Schema, field by field, in sentences that say how to fix them.

Workflow, command line and activity apply the same schema, also for tools that are registered on other workers. A field
that holds a reference is validated only once its value is known.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

from plansurvive.plans.definition import bounded_schema
from plansurvive.plans.definition.bounded_schema import MAX_MATCH, TooMuch, Unbounded
from plansurvive.plans.definition.foreign_names import CALLS, value_meant
from plansurvive.plans.definition.locations import MAX_FIELD
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.own_fields import beside_args
from plansurvive.plans.definition.plain_words import shown
from plansurvive.plans.expressions.references import Reference, find, is_literal
from plansurvive.plans.model import ToolSpec

MAX_APPLIED = 100_000
"""Keywords, matches and errors of one check of a server's schema."""
MAX_NAMED = 30
"""Arguments that a message names."""


def argument_problems(
    spec: ToolSpec, args: Mapping[str, Any], known: Container[str] = (), hints: Hints | None = None
) -> list[tuple[str, str]]:
    """Problems of arguments that may contain references, as (field, sentence), in a stable order."""
    try:
        errors = _errors(spec, dict(args))
    except (TooMuch, Unbounded):
        return [("args", f"these arguments cannot be checked against the schema of {spec.name} in bounded time")]
    if not errors:
        return []  # the common case; searching long texts for references costs more than everything else here
    pending = _Pending(reference for reference in find(dict(args)) if not is_literal(reference, known))
    hints = hints or Hints()
    found = [sentence for error in errors if not pending.awaits(error) for sentence in _sentences(spec, error, hints)]
    return sorted(set(found))


def _errors(spec: ToolSpec, args: dict[str, Any]) -> list[ValidationError]:
    """The errors of the arguments. A server's schema is applied with a limit, the same at each replay."""
    if not spec.server:
        return [] if _are_plain(spec, args) else list(spec.validator.iter_errors(args))
    left = iter(range(MAX_APPLIED))
    return list(bounded_schema.errors(spec.args_schema, args, lambda: next(left, None) is not None, MAX_MATCH))


def _are_plain(spec: ToolSpec, args: dict[str, Any]) -> bool:
    """Whether the arguments fit for their types alone, which most do. Asking the library costs ten times that."""
    kinds, required = spec.plain_arguments, spec.args_schema.get("required", ())
    if not kinds or type(required) not in (list, tuple):
        return False
    for name, value in args.items():
        if name not in kinds or type(value) not in kinds[name]:
            return False
    return all(map(args.__contains__, required))


class _Pending:
    """The places whose values are not known yet."""

    def __init__(self, references: Iterable[Reference]) -> None:
        self._whole: set[tuple[str | int, ...]] = set()
        """Those that are replaced whole, and everything that contains them."""
        self._texts: set[tuple[str | int, ...]] = set()
        """Texts with insertions: these remain texts."""
        for reference in references:
            if reference.whole:
                self._whole |= {reference.place[:length] for length in range(len(reference.place) + 1)}
            else:
                self._texts.add(reference.place)

    def awaits(self, error: ValidationError) -> bool:
        """Whether the error may disappear once the references are filled in."""
        if error.validator in ("required", "additionalProperties"):
            return False
        path = tuple(error.absolute_path)
        return path in self._whole or (path in self._texts and error.validator not in ("type", "anyOf"))


def _sentences(spec: ToolSpec, error: ValidationError, hints: Hints) -> list[tuple[str, str]]:
    path = ".".join(["args", *(str(part)[:MAX_FIELD] for part in error.absolute_path)])[:MAX_FIELD]
    instance: Any = error.instance
    if error.validator == "required":
        required: Any = error.validator_value
        name = next(each for each in required if error.message.startswith(repr(each)))
        return [(f"{path}.{name}", f"{spec.name} needs '{name}'; add it")]
    if error.validator == "additionalProperties":
        schema: Any = error.schema
        known = list(schema.get("properties", {}))
        return [(f"{path}.{name}", _unknown(spec, str(name), known, hints)) for name in instance if name not in known]
    if error.validator == "type":
        quotes = _quotes(error.validator_value, instance)
        return [(path, f"should be {in_words(error.validator_value)}; it is {shown(instance, 60)}{quotes}")]
    if error.validator == "anyOf":
        inner = [each for each in error.context or () if each.validator != "type"]
        if inner and not any(each.validator in _BOUNDS for each in inner):
            return _sentences(spec, inner[0], hints)  # its type is right, so the rest of that option says what is wrong
        options: Any = error.validator_value
        kinds = in_words([option.get("type", "value") for option in options])
        bounds = [f"{word} {option[name]}" for option in options for name, word in _BOUNDS.items() if name in option]
        return [(path, f"should be {' '.join([kinds, ' and '.join(bounds)]).strip()}; it is {shown(instance, 60)}")]
    if error.validator == "enum" and not spec.server:
        return [(path, _none_of(path.rpartition(".")[2], error.validator_value, instance))]
    if spec.server:  # the library's message repeats what the server wrote into its schema, such as a list of values
        limit = error.validator_value
        named = f" {limit}" if isinstance(limit, int | float) else ""
        return [(path, f"{shown(instance, 60)} does not fit `{error.validator}{named}` of the tool's schema")]
    return [(path, " ".join(error.message.split())[:300])]


def _none_of(name: str, values: Any, given: Any) -> str:
    shown_ones = [shown(each) for each in values[:MAX_NAMED]]
    either = " or ".join(filter(None, (", ".join(shown_ones[:-1]), shown_ones[-1])))
    meant = value_meant(name, given, [each for each in values if isinstance(each, str)])
    return f"should be {either}; it is {shown(given, 60)}{meant}"


def _unknown(spec: ToolSpec, name: str, known: list[str], hints: Hints) -> str:
    hint = hints.question(name, known, CALLS)
    if not hint:
        takes = f"it takes {', '.join(known[:MAX_NAMED]) or 'nothing'}"
        hint = f"; {beside_args(name) or takes}"
    return f"{spec.name} has no argument '{name}'{hint}"


KINDS = {
    "string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "an object",
}  # fmt: skip
"""The types of JSON Schema in plain words."""
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "of at least", "maximum": "of at most", "exclusiveMaximum": "below"}


def in_words(value: Any) -> str:
    """Which types a value may have; that it may be left out goes without saying."""
    named = value if isinstance(value, list) else [value]
    return " or ".join(KINDS.get(each, str(each)) for each in named if each != "null" or len(named) == 1)


def _quotes(kind: Any, value: Any) -> str:
    """What quotes have to do with a value of the wrong type."""
    if kind == "string" and isinstance(value, int | float):
        return "; put it in quotes"
    is_number = isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value)
    return "; leave out the quotes" if kind in ("integer", "number") and is_number else ""

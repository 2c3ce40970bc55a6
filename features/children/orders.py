"""What the tool `plan` is asked to run: its source and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from plansurvive.plans.child_state import Kind
from plansurvive.plans.errors import BadReference
from plansurvive.plans.model.opaque import STEPS

SOURCES: tuple[str, ...] = ("file", "template", STEPS)
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"),
)  # fmt: skip


class Source(NamedTuple):
    """Where a child plan comes from."""

    kind: Kind
    value: Any
    """The path, the template's name, or the steps."""


def source_of(args: Mapping[str, Any]) -> Source:
    """The source that the arguments name. Raises BadReference (INVALID_ARGS) unless there is exactly one."""
    given = [name for name in SOURCES if args.get(name) is not None]
    if len(given) != 1:
        raise BadReference(source_problem(given), "INVALID_ARGS")
    name = given[0]
    return Source("inline" if name == STEPS else "file" if name == "file" else "template", args[name])


def source_problem(given: list[str]) -> str:
    """Why arguments that name these sources are wrong."""
    return f"a plan step has one of file, template and steps; it has {' and '.join(given) or 'none of them'}"


def inputs_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that the step gives the child; null ones are left to their defaults."""
    given = args.get("inputs") or {}
    return {name: value for name, value in given.items() if value is not None}


def inline_data(steps: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of inline steps: its inputs are those that the step gives it, with the types of their values."""
    declared = {name: {"type": type_of(value)} for name, value in inputs.items()}
    return {"steps": steps, **({"inputs": declared} if declared else {})}


def type_of(value: Any) -> str:
    """The type of an input with this value."""
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "object")

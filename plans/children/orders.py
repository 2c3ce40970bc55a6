"""What the tool `plan` is asked to run: its source, its inputs, and the id of the child plan.

The id is derived from the parent's and the step's, so that a resumed plan finds its child; an author may choose one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from plansurvive.plans.children.state import ChildPlan, Kind
from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.opaque import STEPS

SOURCES: tuple[str, ...] = ("file", "template", STEPS)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RUN = re.compile(r".+(-r[1-9][0-9]*)")
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


def child_id(plan_id: str, step_id: str, calls: int, chosen: str | None = None) -> str:
    """The id of a step's child plan; `calls` numbers the calls of the step, from 1; `chosen`: by the plan's author.

    An id is never used twice: in a resumed run, a chosen one gets the number of the run (`x-r2`).
    """
    again = f"-{calls}" if calls > 1 else ""
    if chosen:
        run = _RUN.fullmatch(plan_id)
        return f"{chosen[:180]}{run[1] if run else ''}{again}"
    return f"{plan_id[:110]}-{slug(step_id)}{again}"


def slug(step_id: str) -> str:
    """A step id as part of a workflow id; ids of instances (`resize[cat.png]`) have characters that none may have."""
    safe = _UNSAFE.sub("-", step_id).strip("-")
    if safe == step_id and len(safe) <= 70:
        return safe
    return f"{safe[:60].rstrip('-')}-{_short_hash(step_id)}"


def loaded(state: ChildPlan | None, args: Mapping[str, Any]) -> str:
    """The hash of the content that was loaded for a call with these arguments; empty if none was, or need not be."""
    if state is None or not state.named or state.named not in (args.get("file"), args.get("template")):
        return ""
    return state.sha256


def must_load(state: ChildPlan | None, args: Mapping[str, Any]) -> bool:
    """Whether the content of the plan must be loaded before it is known what the step would do."""
    return args.get(STEPS) is None and not loaded(state, args)


def _short_hash(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:8]

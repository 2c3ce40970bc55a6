"""Fills in the secrets that arguments name, in the worker that makes the call and nowhere before.

Everything that was checked before the plan started is checked again, against this worker's secrets.toml: what a
history says may be older, or come from another machine.

Rejected: references with a value type that each view masks; one forgotten view would be a leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plansurvive.plans.activity_io import Call
from plansurvive.plans.errors import ToolError
from plansurvive.plans.expressions.references import Place
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.secrets.calls import MISPLACED, REFUSED, host_problem
from plansurvive.plans.secrets.naming import filled, misuse, names_in
from plansurvive.runtime.secrets.store import SecretStore


def with_secrets(
    spec: ToolSpec, args: dict[str, Any], places: Sequence[Place], call: Call, store: SecretStore | None
) -> dict[str, Any]:
    """The arguments with the secrets at `places`. Raises ToolError SECRET_REFUSED, SECRET_MISSING, SECRET_MISPLACED."""
    if store is None:
        raise ToolError(REFUSED, "this worker has no secrets (secrets.toml)")
    used, found = list[str](), dict(args)
    for place in places:
        text = _at(args, place)
        names = names_in(text) if isinstance(text, str) else []
        if not names or (len(place) == 1 and place[0] in spec.quoting):
            raise ToolError(MISPLACED, _where(place, misuse(text) if isinstance(text, str) else ""))
        values = store.values(names, spec)
        if any(call.literal and not store.entries[name].models for name in names):
            raise ToolError(REFUSED, f"an agent may not use the secret {names[0]} on this worker (secrets.toml)")
        found = _changed(found, place, filled(text, values, literal=call.literal))
        used += names
    if problem := host_problem(store.allowed(spec), used, found):
        raise ToolError(REFUSED, problem)
    return found


def as_written(args: dict[str, Any], call: Call) -> dict[str, Any]:
    """The arguments with the names of secrets instead of secrets, for whoever looks at a call beside its tool."""
    for place in call.secrets:
        args = _changed(args, place, _at(call.args, place))
    return args


def _where(place: Place, problem: str) -> str:
    name = ".".join(map(str, place))[:200]
    return f"args.{name}: {problem or 'a secret cannot stand here'}"


def _at(args: Any, place: Place) -> Any:
    for key in place:
        args = args[key]
    return args


def _changed(value: Any, place: Sequence[str | int], text: str) -> Any:
    """A copy of the value with the text at a place; what is beside it is shared."""
    if not place:
        return text
    if isinstance(value, list):
        index = int(place[0])
        return [*value[:index], _changed(value[index], place[1:], text), *value[index + 1 :]]
    return {**value, place[0]: _changed(value[place[0]], place[1:], text)}

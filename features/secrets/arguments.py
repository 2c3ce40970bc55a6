"""Fills in the secrets that arguments name, in the worker that makes the call and nowhere before.

Everything that was checked before the plan started is checked again, against this worker's secrets.toml: what a
history says may be older, or come from another machine.

Rejected: references with a value type that each view masks; one forgotten view would be a leak.
"""

from __future__ import annotations

import asyncio
from typing import Any

from plansurvive.activities.attempt.stored_arguments import at, changed
from plansurvive.activities.feature import Layer
from plansurvive.activities.tools.tool import Tool
from plansurvive.features.secrets.model import NamedSecrets
from plansurvive.features.secrets.naming import filled, misuse, names_in
from plansurvive.features.secrets.permissions import MISPLACED, REFUSED, host_problem
from plansurvive.features.secrets.store import SecretStore
from plansurvive.plans.activity_io import Call
from plansurvive.plans.errors import ToolError
from plansurvive.plans.expressions.references import Location
from plansurvive.plans.model import ToolSpec


class SecretArguments(Layer):
    """The layer around attempts: fills in the secrets of a worker."""

    def __init__(self, store: SecretStore) -> None:
        self.store = store

    async def arguments(self, tool: Tool, call: Call, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments with their secrets. Raises ToolError SECRET_REFUSED, SECRET_MISSING, SECRET_MISPLACED."""
        named = call.known_part(NamedSecrets)
        if named is None or not named.places:
            return args
        return await asyncio.to_thread(with_secrets, tool.spec, args, named, self.store)


def with_secrets(spec: ToolSpec, args: dict[str, Any], named: NamedSecrets, store: SecretStore) -> dict[str, Any]:
    """The arguments with the secrets in them. Raises ToolError SECRET_REFUSED, SECRET_MISSING, SECRET_MISPLACED."""
    used, found = list[str](), dict(args)
    for place in named.places:
        text = at(args, place)
        names = names_in(text) if isinstance(text, str) else []
        if not names or (len(place) == 1 and place[0] in spec.quoting):
            raise ToolError(MISPLACED, _where(place, misuse(text) if isinstance(text, str) else ""))
        values = store.values(names, spec)
        if any(named.literal and not store.entries[name].models for name in names):
            raise ToolError(REFUSED, f"an agent may not use the secret {names[0]} on this worker (secrets.toml)")
        found = changed(found, place, filled(text, values, literal=named.literal))
        used += names
    if problem := host_problem(store.allowed(spec), used, found):
        raise ToolError(REFUSED, problem)
    return found


def _where(place: Location, problem: str) -> str:
    name = ".".join(map(str, place))[:200]
    return f"args.{name}: {problem or 'a secret cannot stand here'}"

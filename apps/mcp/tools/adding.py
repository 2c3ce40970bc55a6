"""Adds a method to a server as a tool, with annotations that say what it does.

Arguments are named as all JSON of this project is: `plan_id` is `planId` to an agent.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic.alias_generators import to_camel

Method = Callable[..., Awaitable[CallToolResult | InputRequiredResult]]


class Kind(Enum):
    """What a tool does to plans and the world, as annotations say it to agents and people."""

    READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    """Changes nothing at all."""
    CONTROLS = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    """Changes whether or how a plan continues; once more changes nothing."""
    ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    """Ends something or takes it back; once more changes nothing."""
    CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    """Changes a plan; once more changes it again."""
    STARTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
    """Starts steps, which may do anything that tools may."""


def add(server: MCPServer[Any], method: Method, title: str, kind: Kind) -> None:
    """Add a method as a tool of its name; its docstring is the description."""
    server.add_tool(
        _exposed(method), title=title, annotations=kind.value, description=" ".join((method.__doc__ or "").split())
    )


def _exposed(method: Method) -> Method:
    """The method with the names that agents see."""
    signature = inspect.signature(method, eval_str=True)
    names = {to_camel(name): name for name in signature.parameters}

    async def call(**given: Any) -> CallToolResult | InputRequiredResult:
        return await method(**{names[name]: value for name, value in given.items()})

    parameters = [each.replace(name=to_camel(each.name)) for each in signature.parameters.values()]
    call.__name__, call.__doc__ = method.__name__, method.__doc__
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": signature.return_annotation}
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call

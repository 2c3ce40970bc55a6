"""Which tools a person's role may see and call, by what the tools say of themselves.

Read-only tools are a viewer's; those that decide, an approver's; all others, an operator's. The server's tools check
the same once more where they act: this keeps an agent from being offered what it may not use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import ListToolsResult, Tool
from starlette.requests import Request

from plansurvive.client.access.people import Person, Role, person_of

DECIDES = frozenset(("plan_approve", "plan_deny", "plan_withdraw", "plan_answer", "plan_decide"))
"""Tools that take a person's decision, or ask for it; a server has them only if it allows that."""
OF_METHODS = {"tasks/update": Role.APPROVER, "tasks/cancel": Role.OPERATOR}
"""Requests that are no tool calls and change something."""
REFUSED = -32_003
"""Error of the protocol: JSON-RPC leaves -32000 to -32099 to servers."""


def role_for(tool: Tool) -> Role:
    """The role that a tool needs. A tool that does not say that it only reads changes something."""
    if tool.name in DECIDES:
        return Role.APPROVER
    return Role.VIEWER if tool.annotations and tool.annotations.read_only_hint else Role.OPERATOR


def guard(server: MCPServer[Any]) -> None:
    """Have a server look at the role of the person before every request, and leave out what it may not use."""
    server.middleware.insert(0, _ByRole(server))


class _ByRole:
    def __init__(self, server: MCPServer[Any]) -> None:
        self._server = server

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        person = _person(ctx)
        if ctx.method == "tools/call":
            name = (ctx.params or {}).get("name")
            tool = next((each for each in await self._server.list_tools() if each.name == name), None)
            if tool is not None:
                _check(person, role_for(tool), str(name))
        elif ctx.method in OF_METHODS:
            _check(person, OF_METHODS[ctx.method], ctx.method)
        found = await call_next(ctx)
        return _left(found, person) if ctx.method == "tools/list" else found


def _person(ctx: ServerRequestContext[Any, Any]) -> Person:
    if not isinstance(ctx.request, Request):
        raise MCPError(code=REFUSED, message="This needs a login.")
    return person_of(ctx.request)


def _check(person: Person, role: Role, what: str) -> None:
    if not person.may(role):
        raise MCPError(code=REFUSED, message=f"FORBIDDEN: {what} needs the role {role.name.lower()}")


def _left(found: HandlerResult, person: Person) -> HandlerResult:
    if isinstance(found, ListToolsResult):
        return found.model_copy(update={"tools": _allowed(found.tools, person)})
    if isinstance(found, dict):
        listed = ListToolsResult.model_validate(found)
        names = {each.name for each in _allowed(listed.tools, person)}
        return found | {"tools": [each for each in found["tools"] if each["name"] in names]}
    return found


def _allowed(tools: Iterable[Tool], person: Person) -> list[Tool]:
    return [each for each in tools if person.may(role_for(each))]

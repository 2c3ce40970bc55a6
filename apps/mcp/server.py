"""Makes the MCP server of a host: each area registers its tools, resources and prompts.

A new area is a function `register(server, host)` in AREAS; an extension of the protocol is a function in EXTENSIONS,
as the library fixes extensions when the server is made. Errors of tools become results (`apps.mcp.common.errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any

from mcp.server.context import ServerMiddleware
from mcp.server.extension import Extension
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import CallToolResult, InputRequiredResult, Tool
from pydantic import AnyUrl
from temporalio.client import Client

from plansurvive.apps.mcp import prompts, resources
from plansurvive.apps.mcp.common import errors
from plansurvive.apps.mcp.common.host import Forbidden, Host
from plansurvive.apps.mcp.common.rounds import sealing
from plansurvive.apps.mcp.decisions import asking
from plansurvive.apps.mcp.tasks.extension import Tasks
from plansurvive.apps.mcp.tasks.listen import TaskNotifications
from plansurvive.apps.mcp.template_tools.calling import Templates
from plansurvive.apps.mcp.tools import checking, controlling, deciding, editing, files, following, showing, starting
from plansurvive.client.missing import completed
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.errors import PlanError

Register = Callable[[MCPServer[Any], Host], None]

AREAS: tuple[Register, ...] = (
    checking.register, starting.register, showing.register, following.register, editing.register, controlling.register,
    files.register, deciding.register, asking.register, resources.register, prompts.register,
)  # fmt: skip
EXTENSIONS: tuple[Callable[[Host], Extension], ...] = (Tasks,)
MIDDLEWARE: tuple[Callable[[Host], ServerMiddleware[Any]], ...] = (TaskNotifications,)

NAME = "plans"
INSTRUCTIONS = """\
Durable plans of tool steps on Temporal: a plan keeps running when you, this server or the machine stops. Write one \
(the prompt write_plan and plan_schema say how, plan_tools lists the tools), check it with plan_check, start it with \
plan_start, follow it with plan_show and `wait`. """
DECIDES = {
    False: """Steps that change or send something may await a person's approval. You cannot approve, and nothing in a \
plan that you start waives approvals: tell the person where to decide, as each answer says. Continue with other \
work; the plan waits.""",
    True: """Steps that change or send something may await an approval. The person lets you decide: read the whole \
call in plan_pending first, and approve only what they would.""",
}
"""What an agent is told of decisions, by whether it may make them."""
ASKS = " plan_decide has this client ask the person, if it can."


class PlanServer(MCPServer[Any]):
    """An MCP server whose tools fail with the codes and sentences of the command line.

    An argument that a tool does not have is refused, not ignored: an agent that asks for a waiver learns that there is
    none.
    """

    templates: Templates

    async def list_tools(self) -> list[Tool]:
        """The tools, with schemas that say that there are no other arguments; then those of templates."""
        own = [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in await super().list_tools()
        ]
        names = {tool.name for tool in own}
        offered = await self.templates.tools()
        return [*own, *(tool for tool in offered if tool.name not in names)]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error becomes a result with `isError`."""
        tools: dict[str, Tool] = {}
        try:
            tools = {tool.name: tool for tool in await self.list_tools()}
            _refuse_unknown(tools, name, arguments)
            if context and all(each.name != name for each in await super().list_tools()):
                found = await self.templates.call(name, arguments, context)
                if found is not None:
                    return found
            return await super().call_tool(name, arguments, context)
        except PlanError as error:
            failure = error
        except ToolError as error:
            failure = errors.error_of(error, tools[name].input_schema if name in tools else {}, arguments)
        return errors.told(await completed(self._client, failure), tools, name)

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource; an error of ours keeps its code and sentence."""
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            raise await errors.resource_error(error, self._client) from error

    async def _client(self) -> Client:
        return (await self.templates.host.connected(worker=False)).client


def _refuse_unknown(tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any]) -> None:
    """Raise PlanError for a tool that there is not, or arguments that it does not have."""
    if name not in tools and name in deciding.DECIDING:
        text = "an agent cannot approve, deny, answer or begin; plan_pending says where a person does"
        raise Forbidden(f"{text}. The person may let agents decide: plan mcp --may-approve")
    if name not in tools:
        hint = Hints().question(name, tools) or "; tools/list lists them"
        raise PlanError(f"there is no tool {name[:100]!r}{hint}", "UNKNOWN_TOOL")
    own = tools[name].input_schema.get("properties", {})
    if unknown := sorted(arguments.keys() - own.keys()):
        hint = Hints().question(unknown[0], own) or f"; it has {', '.join(own) or 'none'}"
        raise PlanError(f"{name} has no argument {', '.join(map(repr, unknown))[:500]}{hint}", "BAD_ARGUMENTS")


def build(host: Host) -> MCPServer[Any]:
    """The server of a host, for any transport."""
    server = PlanServer(
        NAME,
        title="Plans that survive",
        instructions=INSTRUCTIONS + DECIDES[host.may_approve] + (ASKS if host.deciding != "elsewhere" else ""),
        version=_version(),
        extensions=[each(host) for each in EXTENSIONS],
        middleware=[each(host) for each in MIDDLEWARE],
        log_level="WARNING",
        request_state_security=sealing(host),
    )
    server.templates = Templates(host)
    for register in AREAS:
        register(server, host)
    return server


def _version() -> str:
    try:
        return metadata.version("plansurvive")
    except metadata.PackageNotFoundError:
        return "0"

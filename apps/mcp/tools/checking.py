"""Writing plans: plan_tools, plan_schema, plan_check. They need no Temporal server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.sources import FileGiven, InputsGiven, PlanGiven, Source, TemplateGiven, Workspace
from plansurvive.client.feature import content_of, problems_of
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import check, plan_schema
from plansurvive.client.requests.roots import Roots
from plansurvive.client.requests.workspaces import asking_in, directory_of, out_of_reach, own_workspace_problems
from plansurvive.plans.definition.checks.validation import errors, input_values
from plansurvive.plans.definition.checks.will_ask import Asking, waived
from plansurvive.plans.definition.foreign_names import no_tool
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Problem, ToolSpec, Value

MAX_PROBLEMS = 100


class ToolShown(Value):
    """A tool that steps may call."""

    name: str
    description: str
    value: str = Field(default="", description="What its result looks like.")
    asks: bool = Field(description="Whether calls await a person's approval, unless their arguments are exempt.")
    args_schema: dict[str, Any] | None = Field(default=None, description="Of the tool that was asked for.")


class ToolsShown(Value):
    """The tools that steps may call."""

    tools: list[ToolShown]


class SchemaShown(Value):
    """The JSON Schema of plan files."""

    plan_schema: dict[str, Any]


class CheckedPlan(Value):
    """Whether a plan can be started, and what will ask."""

    ok: bool
    problems: list[Problem] = Field(default_factory=list, description="Errors keep it from starting; warnings do not.")
    asks: list[Asking] = Field(default_factory=list, description="Steps that will await a person.")
    waived: list[str] = Field(
        default_factory=list, description="Steps whose waiver does not count: a person wrote none."
    )


@dataclass(frozen=True)
class Checking:
    """The tools for who writes a plan."""

    host: Host

    async def plan_tools(
        self, ctx: Request, name: Annotated[str | None, Field(max_length=200, description="Only this tool.")] = None
    ) -> Annotated[CallToolResult, ToolsShown]:
        """List the tools that the steps of a plan may call; with a name, that tool with the schema of its arguments."""
        del ctx
        known = known_tools(self.host.settings)
        if name is not None and name not in known:
            raise PlanError(no_tool(name, known), "UNKNOWN_TOOL")
        specs = [known[name]] if name is not None else list(known.values())
        found = ToolsShown(tools=[_tool(each, whole=name is not None) for each in specs])
        rows = [f"{each.name}: {each.description.partition(chr(10))[0]}" for each in found.tools]
        return reply(found, _told(found.tools[0]) if name is not None else "\n".join(rows))

    async def plan_schema(self, ctx: Request) -> Annotated[CallToolResult, SchemaShown]:
        """Return the JSON Schema of plan files."""
        del ctx
        schema = plan_schema()
        return reply(SchemaShown(plan_schema=schema), json.dumps(schema))

    async def plan_check(
        self,
        ctx: Request,
        plan: PlanGiven = None,
        file: FileGiven = None,
        template: TemplateGiven = None,
        inputs: InputsGiven = None,
        workspace: Workspace = None,
    ) -> Annotated[CallToolResult, CheckedPlan]:
        """Report every problem of a plan, and which steps will await a person. Starts nothing."""
        del ctx
        found = self._checked(Source(plan, file, template), inputs, workspace)
        rows = [f"{each.severity} {each.text}" for each in found.problems] or ["No problems."]
        rows += [f"will ask: {each.step_id}: {each.reason}" for each in found.asks]
        rows += [f"waiver of {name} does not count: only a person can waive an approval" for name in found.waived]
        return reply(found, "\n".join(rows))

    def _checked(self, source: Source, inputs: dict[str, Any] | None, workspace: str | None) -> CheckedPlan:
        settings = self.host.settings
        place = Roots.of(settings).workspace(workspace or "")
        try:
            file = source.read(settings)
        except InvalidPlan as error:
            return CheckedPlan(ok=False, problems=error.problems[:MAX_PROBLEMS])
        tools = known_tools(settings)
        plan, problems = check(file.data, tools)
        if plan is None:
            return CheckedPlan(ok=False, problems=problems[:MAX_PROBLEMS])
        problems += problems_of(plan, settings)
        problems += own_workspace_problems(file, plan.workspace, settings) if plan.workspace and not place else []
        directory = directory_of(file, plan, place, settings)
        problems += content_of(plan, tools, directory, settings.state_dir)[0] + out_of_reach(plan, tools, directory)
        problems += input_values(plan, inputs)[1] if inputs is not None else []
        wrong = errors(problems)
        asks = [] if wrong else asking_in(plan, directory, tools, settings, unwaived="an agent's plan")
        return CheckedPlan(
            ok=not wrong, problems=problems[:MAX_PROBLEMS], asks=asks[:MAX_PROBLEMS], waived=waived(plan)[:MAX_PROBLEMS]
        )


def _tool(spec: ToolSpec, *, whole: bool) -> ToolShown:
    text = spec.description if whole else spec.description.partition("\n")[0][:300]
    return ToolShown(
        name=spec.name, description=text, value=spec.value, asks=spec.approval == "always",
        args_schema=spec.args_schema if whole else None,
    )  # fmt: skip


def _told(tool: ToolShown) -> str:
    """One tool with its arguments, for clients that show a model only the text."""
    asks = "\nCalls await a person's approval." if tool.asks else ""
    return f"{tool.name}: {tool.description}\nargs: {json.dumps(tool.args_schema)}\nvalue: {tool.value}{asks}"


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Checking(host)
    add(server, tools.plan_tools, "Tools of plans", Kind.READS)
    add(server, tools.plan_schema, "Schema of plan files", Kind.READS)
    add(server, tools.plan_check, "Check a plan", Kind.READS)

"""The tool of a template: its name, what it is for, its typed inputs as a schema, its outputs.

A template is read when tools are listed and when its tool is called, so that one that is saved meanwhile counts. Its
texts are somebody's: bounded, and without characters that nobody would see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.types import Tool

from plansurvive.apps.mcp.tools.adding import Kind
from plansurvive.apps.mcp.tools.views import Shown
from plansurvive.client.requests.roots import Roots
from plansurvive.features.templates.known import Known
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Input, Plan
from plansurvive.plans.model.template import Template
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.runtime.settings import Settings

ALL = "all"
RESERVED = "plan_"
"""Tools of the server itself; a template of such a name gets another one."""
MAX_OFFERED = 100
MAX_DESCRIPTION = 2_000
CONTENT = "content"
"""The output that is shown as it is: blocks of MCP, and files (`apps.mcp.template_tools.contents`)."""


@dataclass(frozen=True)
class Offer:
    """A template as a tool. `is_exact`: a person named this version, not whatever is saved under the name."""

    tool: str
    template: Template
    plan: Plan
    is_exact: bool

    def described(self) -> Tool:
        """The tool as clients see it."""
        return Tool(
            name=self.tool,
            title=line(self.plan.title or self.template.name)[:200],
            description=self._description(),
            input_schema=input_schema(self.plan.inputs),
            output_schema=output_schema(self.plan),
            annotations=Kind.STARTS.value,
        )

    def _description(self) -> str:
        about = safe(self.template.description or self.plan.title or f"Runs the saved plan {self.template.name}.")
        steps = len(self.plan.steps)
        told = f"Starts a durable plan of {number_of(steps, 'step')}, and waits a while for its end."
        return f"{about[:MAX_DESCRIPTION]}\n\n{told} Template {self.template.label}."


def offers(settings: Settings, names: Sequence[str]) -> Iterator[Offer]:
    """The templates that are offered under these names (`NAME`, `NAME@HASH`, `all`) and can be read."""
    known = Known.of(settings, str(Roots.of(settings).paths[0]))
    wanted = list(dict.fromkeys(names))
    if ALL in wanted:
        wanted = list(dict.fromkeys([*(each for each in wanted if each != ALL), *_every(known, wanted)]))
    seen: set[str] = set()
    for name in wanted[:MAX_OFFERED]:
        try:
            template = known.find(name)
        except PlanError:
            continue  # it was deleted, or cannot be read: `plan template list` says why
        plan = read_plan(template.data)
        tool = tool_name(template.name)
        if isinstance(plan, Plan) and tool not in seen:
            seen.add(tool)
            yield Offer(tool, template, plan, "@" in name)


def tool_name(template: str) -> str:
    """The name of a template's tool. Names of templates are valid ones (MCP 2026-07-28, "Tool names")."""
    return f"template_{template}" if template.startswith(RESERVED) else template


def input_schema(inputs: dict[str, Input]) -> dict[str, Any]:
    """The inputs of a plan as the arguments of a tool."""
    schema: dict[str, Any] = {"type": "object", "properties": {name: _input(each) for name, each in inputs.items()}}
    required = [name for name, each in inputs.items() if each.default is None]
    return {**schema, **({"required": required} if required else {}), "additionalProperties": False}


def output_schema(plan: Plan) -> dict[str, Any]:
    """What a call answers: where the plan stands, and its outputs once it has ended."""
    schema = Shown.model_json_schema(by_alias=True, mode="serialization")
    outputs: dict[str, Any] = {name: {} for name in plan.outputs if name != CONTENT}
    about = "What came of the plan, once it has ended."
    schema["properties"]["outputs"] = {"type": "object", "properties": outputs, "description": about}
    return schema


def _input(declared: Input) -> dict[str, Any]:
    found: dict[str, Any] = {"type": declared.type}
    if declared.description:
        found["description"] = safe(declared.description)[:MAX_DESCRIPTION]
    if declared.default is not None:
        found["default"] = declared.default
    return found


def _every(known: Known, named: Sequence[str]) -> list[str]:
    """The names of all templates but those that are named with a version."""
    exact = {name.partition("@")[0] for name in named if "@" in name}
    return [each.name for each in known.every() if not each.problem and each.name not in exact]

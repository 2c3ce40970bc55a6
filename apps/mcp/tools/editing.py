"""Editing plans: plan_edit. An agent may change what an LLM may, and only in plans that agents started.

In a plan of a person, an edit could bring about what the person did not mean: by skipping the question before a step,
or in a step whose approval is waived. In a plan that an agent started nothing is waived, each call that needs an
approval asks, and what was approved is void once the call differs, as for every edit.

Agents edit plans of agents only: an edit of a person's plan could skip the question before a step, and a check of each
edit for what it takes away would never be complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Forbidden, Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.sources import refuse_other_queues
from plansurvive.apps.mcp.tools.views import PlanId
from plansurvive.client import runs
from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id as id_of
from plansurvive.client.local_tools import tools_of
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import ask
from plansurvive.plans.editing.edits import MAX_EDITS, AddStep, Edit, SetField
from plansurvive.plans.expressions.json_path import first_name
from plansurvive.plans.llm.own_fields import Tools, own_fields
from plansurvive.plans.model import Step, Value
from plansurvive.plans.model.plan import OfPlan, plan_aliases, plan_names
from plansurvive.plans.model.step_fields import Llm, aliases, names

_LLM_EDITS = OfPlan.EDIT | OfPlan.LLM
OF_THE_PLAN = frozenset((*plan_aliases(_LLM_EDITS), *plan_names(_LLM_EDITS)))
"""Fields of a plan that an agent may set: not its budget, defaults, notifications or limits."""
_NEVER = frozenset((*aliases(Step, Llm.NEVER), *names(Step, Llm.NEVER)))
_APPROVAL = ("requiresApproval", "requires_approval")


class EditedPlan(Value):
    """An edit that was made."""

    plan_id: str
    version: int = Field(description="The plan's new version.")
    diff: list[str] = Field(description="What changed, one line per change.")
    warnings: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Editing:
    """The tool that changes plans."""

    host: Host

    async def plan_edit(
        self,
        ctx: Request,
        plan_id: PlanId,
        edits: Annotated[list[Edit], Field(min_length=1, max_length=MAX_EDITS, description="All are made, or none.")],
        expect_version: Annotated[int | None, Field(description="Refuse if the plan is at another version.")] = None,
        why: Annotated[str, Field(max_length=2_000, description="Reason, for the plan's log.")] = "",
    ) -> Annotated[CallToolResult, EditedPlan]:
        """Edit steps of a plan that have not started: set fields, add, remove, move, skip, unskip. What was approved
        asks again if its call changes. Only plans that an agent started can be edited."""
        caller = self.host.caller(ctx).to_operate()
        here = await self.host.connected()
        refuse_other_queues([edit.model_dump(mode="json") for edit in edits], self.host.settings)
        await _refuse_others(here, plan_id)
        refuse_beyond_llm(edits, await tools_of(here.client, plan_id, here.settings))
        found = await runs.edit(here.client, plan_id, edits, expect_version=expect_version, why=why, **caller.author)
        shown = EditedPlan(plan_id=id_of(plan_id), **found.model_dump(by_alias=False))
        return reply(shown, "\n".join([f"{shown.plan_id}: version {shown.version}", *shown.diff, *shown.warnings]))


def refuse_beyond_llm(edits: Sequence[Edit], tools: Tools) -> None:
    """Raise Forbidden for an edit that says what only people may say. Pure."""
    for edit in edits:
        notes: list[str] = []
        if isinstance(edit, AddStep):
            own_fields({"steps": [edit.step]}, tools, notes)
        elif isinstance(edit, SetField):
            root = first_name(edit.path)
            if edit.step_id is None and root not in OF_THE_PLAN:
                notes.append(f"{root} of the plan is for people to set")
            elif root in _NEVER or (root in _APPROVAL and edit.value is not True):
                notes.append(f"{root} of step '{edit.step_id}' is for people to set")
            elif edit.step_id is not None:
                own_fields({"steps": [{"id": edit.step_id, root: edit.value}]}, tools, notes)
        if notes:
            raise Forbidden("an agent may not edit this: " + "; ".join(notes)[:2_000])


async def _refuse_others(here: Connected, plan: str) -> None:
    """Raise Forbidden for a plan that a person started."""
    state = await ask(here.client, plan, "state")
    if "order" not in state and read_run(state).options.waivers:
        name = id_of(plan)
        text = f"a person started plan '{name}', so only people may edit it"
        raise Forbidden(f"{text}: plan edit {name} --set STEP.FIELD=VALUE, or plan review {name}")


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tool."""
    add(server, Editing(host).plan_edit, "Edit a plan", Kind.CHANGES)

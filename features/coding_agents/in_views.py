"""What views show of a step that a coding agent works on, besides what `agents` shows: where it is seen, its cost."""

from __future__ import annotations

from typing import Any

from plansurvive.features.agents.model.order import agent_of_step
from plansurvive.features.coding_agents.model import TOOL, cost_in
from plansurvive.plans.in_views import InViews, Member
from plansurvive.plans.model import Step
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.step_state import StepState
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.usage import Usage


def _is_of_plan(plan_id: str, step: Step) -> bool:
    """Whether it is a step that an agent works on; in the agent's own run, the tool is a turn of it."""
    return step.tool == TOOL and not plan_id.startswith(AGENT_PREFIX)


def _details(plan_id: str, step: Step, state: StepState) -> list[str]:
    if not _is_of_plan(plan_id, step) or not state.calls:
        return []
    value = state.result.value if state.result is not None else None
    cost, opening = cost_of(value), str(value.get("open") or "") if isinstance(value, dict) else ""
    rows = [f"Coding agent: plan show {agent_of_step(plan_id, step.id, state.calls)}"]
    rows += [f"Cost: {cost}, as the agent says"] if cost else []
    return [*rows, *([f"Its session: {line(opening)}"] if opening else [])]


def cost_of(value: Any) -> str:
    """What the work of an agent has cost, as far as the value of its step says it: `0.02 USD`; empty if it does not."""
    return Usage(cost=cost_in(value.get("usage"))).costs if isinstance(value, dict) else ""


def _member(plan_id: str, step: Step, _: StepState, call: int) -> Member | None:
    if not _is_of_plan(plan_id, step):
        return None
    return Member(agent_of_step(plan_id, step.id, call), f"{step.id}.")


IN_VIEWS = InViews("coding_agents", details=_details, member=_member, delegated=(TOOL,))

"""Whether the coding agents that a plan names are in agents.toml."""

from __future__ import annotations

from plansurvive.features.coding_agents.agents_file import file_of, read_agents, unknown
from plansurvive.features.coding_agents.model import TOOL
from plansurvive.plans.definition.checks.validation import calls_of
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """An error for each agent that is not there. Raises SettingError."""
    named = [
        (step.id, str(call.args["agent"]))
        for _, step in walk(plan)
        for call in calls_of(step)
        if call.tool == TOOL and isinstance(call.args.get("agent"), str) and not find(call.args["agent"])
    ]
    if not named:
        return []
    known, path = read_agents(settings), file_of(settings)
    return [
        Problem(code="NO_CODING_AGENT", message=unknown(name, known, path), step_id=step_id, field="args.agent")
        for step_id, name in named
        if name not in known
    ]

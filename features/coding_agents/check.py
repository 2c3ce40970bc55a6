"""Whether the coding agents that a plan names are in agents.toml, and which limits of its budget do not hold them."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.features.coding_agents.agents_file import file_of, read_agents, unknown
from plansurvive.features.coding_agents.model import TOOL
from plansurvive.features.coding_agents.reported import Reported, reported
from plansurvive.plans.definition.checks.validation import calls_to
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import Budget, Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """Errors for agents that are not there, warnings for limits that do not hold one. Raises SettingError."""
    named = [
        (call.own, str(call.args["agent"]))
        for call in calls_to(plan, TOOL)
        if isinstance(call.args.get("agent"), str) and not find(call.args["agent"])
    ]
    if not named:
        return []
    known, path = read_agents(settings), file_of(settings)
    held = [
        Problem(code="BUDGET_NOT_HELD", message=text, step_id=step_id, field="args.agent", severity="warning")
        for step_id, name in named
        if name in known and plan.budget is not None
        for text in _not_held(plan.budget, name, reported(name, known[name].command, settings))
    ]
    return held + [
        Problem(code="NO_CODING_AGENT", message=unknown(name, known, path), step_id=step_id, field="args.agent")
        for step_id, name in named
        if name not in known
    ]


def _not_held(budget: Budget, name: str, seen: Reported | None) -> Iterator[str]:
    """Why limits of the budget do not hold the agent, or only between its turns."""
    limits = [f"`{limit}`" for limit in ("tokens", "cost") if getattr(budget, limit) is not None]
    if not limits:
        return
    if seen is None:
        text = f"whether {' and '.join(limits)} of the budget hold '{name}' is known once it has worked here"
        yield f"{text}: some agents do not report what they spend; a `timeout` holds each of them"
        return
    if budget.cost is not None and not seen.cost:
        yield f"'{name}' has never reported a cost here: `cost` of the budget does not hold it; limit its `timeout`"
    if budget.tokens is not None and not seen.tokens:
        yield f"'{name}' has never reported tokens here: `tokens` of the budget does not hold it; limit its `timeout`"
    elif budget.tokens is not None and seen.tokens == "at its end":
        yield f"'{name}' reports its tokens when a turn ends: `tokens` of the budget holds it between turns alone"

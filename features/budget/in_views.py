"""What a person is asked about an LLM budget, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.plans.in_views import InViews
from plansurvive.plans.log import LogKind
from plansurvive.plans.proposals import Named, Proposal, whole

KIND = "budget"


def _parts(step_id: str, _: str, args: Mapping[str, Any]) -> list[Named]:
    """What is spent, and what each answer leads to."""
    rest = {name: each for name, each in args.items() if name not in (KIND, "failure", "approve", "deny")}
    approve = args.get("approve", "the budget is raised by half, and the LLM is asked again")
    deny = args.get("deny", f"the LLM is not asked: step '{step_id}' fails")
    shown = whole(KIND, {name: args[name] for name in (KIND, "failure") if name in args})
    return [*shown, Named("if approved", approve), Named("if denied", deny), *(Named(*each) for each in rest.items())]


PROPOSAL = Proposal(
    reason="the plan's LLM budget is used up",
    heading="Exceed the budget?",
    wanted="approval of a larger LLM budget",
    approving="extends the budget for",
    awaited="budget for",
    parts=_parts,
    asked_with=LogKind.BUDGET,
)
IN_VIEWS = InViews("budget", proposals={KIND: PROPOSAL})

"""What the agent of a step asks people, for the views of the step; `plans.children.asked` says it of a whole plan."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.children.asked import asked_below
from plansurvive.plans.run import Run


def agent_asks(run: Run, step_id: str) -> dict[str, Any]:
    """What the agent of a step asks, under `agentAsks` (an AgentAsksView); empty if it asks nothing."""
    for each in asked_below(run, [step_id]):
        if run.steps[step_id].agent_asks:
            return {"agentAsks": {"agentId": each.plan_id, "stepIds": [asked.step_id for asked in each.asked]}}
    return {}

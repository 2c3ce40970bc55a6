"""An agent that may use certain tools begins only if all of them are there."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.kit.driving import Plans

pytestmark = pytest.mark.uses("agents")


async def _refusal(plans: Plans, kind: str, prefix: str, argument: dict[str, Any]) -> str:
    """Why a plan or an agent was refused."""
    with pytest.raises(WorkflowFailureError) as caught:
        await plans.client.execute_workflow(
            kind,
            {**argument, "options": {"workspace": str(plans.workspace)}},
            id=f"{prefix}-{uuid.uuid4().hex[:12]}",
            task_queue=plans.queue,
            execution_timeout=plans.ceiling,
        )
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError), cause
    assert cause.type == "INVALID_PLAN", cause
    return cause.message


@pytest.mark.modes("plain")
async def test_an_agent_that_names_a_tool_which_is_not_there_is_refused(plans: Plans) -> None:
    order = {"request": "Fix it.", "tools": ["work", "wrok"]}
    text = await _refusal(plans, "AgentWorkflow", "agent", {"order": order})
    assert "Unknown tool: wrok; did you mean 'work'?" in text
    assert "Unknown tool: work;" not in text


@pytest.mark.modes("plain")
async def test_a_plan_is_refused_whose_agent_names_a_tool_which_is_not_there(plans: Plans) -> None:
    step = {"id": "fix", "tool": "agent", "args": {"objective": "Fix it.", "tools": ["work", "wrok"]}}
    text = await _refusal(plans, "PlanWorkflow", "plan", {"plan": {"steps": [step]}})
    assert "Unknown tool: wrok; did you mean 'work'?" in text

"""What Temporal's own lists and UI show of a plan: whether it completed, and what its agents and child plans await."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from plansurvive.client import runs
from plansurvive.plans.run import PlanStatus
from tests.kit.driving import Plans, Started, step, work
from tests.kit.waiting import until
from tests.workflows.agents import call, says, serving
from tests.workflows.conftest import MakeWorker
from tests.workflows.test_visible import _details

pytestmark = pytest.mark.uses("children")

MISSING = {"id": "miss", "tool": "read_file", "args": {"path": "missing"}, "retry": {"attempts": 1}}


async def ends(started: Started) -> ApplicationError | None:
    """The failure that the workflow ends with; None if it completes."""
    try:
        await started.handle.result()
    except WorkflowFailureError as error:
        return error.cause if isinstance(error.cause, ApplicationError) else ApplicationError(str(error.cause))
    return None


@pytest.mark.parametrize(
    ("steps", "status", "code", "text"),
    [
        ([work("a")], WorkflowExecutionStatus.COMPLETED, None, None),
        (
            [work("a"), MISSING],
            WorkflowExecutionStatus.FAILED,
            "PLAN_PARTIAL",
            "the plan did not complete: 1 failed; miss: 'missing' does not exist",
        ),
        (
            [{**MISSING, "critical": True}],
            WorkflowExecutionStatus.FAILED,
            "PLAN_FAILED",
            "the plan failed: critical step 'miss' failed",
        ),
    ],
)
@pytest.mark.modes("plain")
async def test_only_a_plan_that_completed_is_completed_in_temporals_list(
    plans: Plans, steps: list[dict[str, Any]], status: WorkflowExecutionStatus, code: str | None, text: str | None
) -> None:
    started = await plans.start(steps)
    failure = await ends(started)
    assert (failure and failure.type) == code
    assert text is None or (failure is not None and failure.message.startswith(text))
    assert (await started.handle.describe()).status is status
    summary = await runs.wait(plans.client, started.id)
    assert summary.is_completed is (code is None), "who waits for the plan learns the same as before"


@pytest.mark.modes("plain")
async def test_a_denied_last_step_is_not_green_and_the_server_does_not_repeat_the_plan(plans: Plans) -> None:
    started = await plans.start([work("a"), work("last", "a", requiresApproval=True)])
    await started.until_asked("last")
    await started.deny("last", by="ann")
    failure = await ends(started)
    assert failure is not None
    assert (failure.type, failure.non_retryable) == ("PLAN_PARTIAL", True)
    assert failure.message == "the plan did not complete: 1 denied"
    assert (await runs.wait(plans.client, started.id)).status is PlanStatus.PARTIAL


@pytest.mark.modes("plain")
async def test_an_interrupted_plan_has_not_failed(plans: Plans) -> None:
    started = await plans.start([work("a", requiresApproval=True)])
    await started.until_asked("a")
    await started.signal("interrupt", {"by": "ann"})
    assert await ends(started) is None
    assert (await runs.wait(plans.client, started.id)).status is PlanStatus.CANCELLED


@pytest.mark.modes("plain")
async def test_a_partial_child_plan_fails_its_workflow_and_its_step_says_why(plans: Plans) -> None:
    child = {"id": "inner", "tool": "plan", "args": {"steps": [work("a"), MISSING]}}
    started = await plans.start([child])
    view = await started.ended()
    found = step(view, "inner")
    assert (found["result"]["code"], "step 'miss' failed" in found["result"]["error"]) == ("PLAN_PARTIAL", True)
    assert found["child"]["status"] == "partial"
    handle = plans.client.get_workflow_handle(f"plan-{found['child']['planId']}")
    assert (await handle.describe()).status is WorkflowExecutionStatus.FAILED


async def test_what_an_agent_awaits_is_in_the_details_of_its_plan_until_it_is_decided(
    idle: Plans, make_worker: MakeWorker
) -> None:
    story = [
        says({"tool_calls": [call("run_command", command="echo hi")]}),
        says({"answer": "It said hi.", "confidence": "high"}),
    ]
    agent = {"id": "agent", "tool": "agent", "args": {"objective": "Say hi."}}
    async with serving(idle, make_worker)(story) as agents:
        started = await agents.plans.start([agent, work("gate", "agent", requiresApproval=True)])

        async def asks() -> str:
            details = await _details(started.handle)
            return details if "Awaiting a person in" in details else ""

        details = await until(asks, "the plan's details name what its agent awaits")
        found = [each async for each in runs.pending(idle.client, plan=started.id)]
        assert [(each.step_id, each.tool) for each in found] == [("call_1", "run_command")]
        assert f"Awaiting a person in `{found[0].plan_id}` of step `agent`: `agent/call_1`" in details
        assert f"`plan pending {started.id.removeprefix('plan-')}`" in details
        await runs.approve(idle.client, found[0].plan_id, runs.Choice(step_id="call_1").naming(found[0]))
        view = await started.until_asked("gate")
        assert "agentAsks" not in step(view, "agent")
        assert "Awaiting a person in" not in await _details(started.handle)
        await started.deny("gate")
        await started.ended()


@pytest.mark.modes("plain")
async def test_what_a_child_plan_awaits_is_in_the_details_of_its_plan(plans: Plans) -> None:
    child = {"id": "inner", "tool": "plan", "args": {"steps": [work("gate", requiresApproval=True)]}}
    started = await plans.start([child])

    async def asks() -> bool:
        return "of step `inner`: `inner/gate`" in await _details(started.handle)

    await until(asks, "the details name the child's step")
    name = started.id.removeprefix("plan-")
    await runs.deny(plans.client, name, runs.Choice(step_id="inner/gate"))
    await started.ended()

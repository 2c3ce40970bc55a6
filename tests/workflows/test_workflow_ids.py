"""The id of a workflow is chosen by whoever starts it: one that no plan can have, or of another plan, is refused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.model import Plan
from plansurvive.plans.run import Options, Run
from plansurvive.workflows.worker_facts import facts_about
from tests.kit.driving import Plans, statuses, work

BAD = ("x y{}", "ä{}", "x/{}", "x\n{}", "x\x1b[31m{}", "x" * 200 + "{}", "[x]{}", "$x{}", "x;{}")
"""Ids of plans with a character that none may have, or too long; `{}` makes them unique."""
PREFIXES = {"PlanWorkflow": "plan-", "AgentWorkflow": "agent-"}
GOOD: dict[str, dict[str, Any]] = {
    "PlanWorkflow": {"plan": {"steps": [work("a")]}},
    "AgentWorkflow": {"order": {"request": "count to three"}},
}


async def refused(plans: Plans, kind: str, argument: Any, name: str) -> str:
    """Why the workflow failed: the message of its failure, which has the code INVALID_PLAN."""
    with pytest.raises(WorkflowFailureError) as caught:
        await plans.client.execute_workflow(
            kind, argument, id=name, task_queue=plans.queue, execution_timeout=plans.ceiling
        )
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError), cause
    assert cause.type == "INVALID_PLAN", cause
    return cause.message


@pytest.mark.parametrize("kind", PREFIXES)
@pytest.mark.modes("plain")
async def test_an_id_that_no_plan_can_have_is_refused_while_others_continue(plans: Plans, kind: str) -> None:
    bystander = await plans.start([work("a"), work("b", "a"), work("c", "b")])
    names = [PREFIXES[kind] + bad.format(uuid.uuid4().hex[:8]) for bad in BAD] + [f"-{uuid.uuid4().hex}"]
    told = await asyncio.gather(*(refused(plans, kind, GOOD[kind], name) for name in names))
    assert all("BAD_PLAN_ID" in text and "start it under such an id" in text for text in told), told
    assert set(statuses(await bystander.ended()).values()) == {"completed"}


@pytest.mark.modes("plain")
async def test_a_plan_that_gives_the_id_of_another_is_refused(plans: Plans) -> None:
    own, other = uuid.uuid4().hex[:12], f"deploy-{uuid.uuid4().hex[:6]}"
    options = {"workspace": str(plans.workspace)}
    for argument in (
        {"plan": {"id": other, "steps": [work("a")]}, "options": options},
        {"plan": {"id": other}, "request": "count to three", "options": options},
        {"run": carried(Plan(id=other, steps=[]), plans.workspace)},
    ):
        told = await refused(plans, "PlanWorkflow", argument, f"plan-{own}")
        assert f"it has the id '{other}'" in told
        assert f"'plan-{own}' is of '{own}'" in told


@pytest.mark.modes("plain")
async def test_an_agent_that_carries_the_run_of_another_is_refused(plans: Plans) -> None:
    run = carried(Plan(id="agent-other", steps=[]), plans.workspace)
    argument = {"agent": {"order": {"request": "count to three"}, "run": run}}
    assert "it has the id 'agent-other'" in await refused(plans, "AgentWorkflow", argument, f"agent-{uuid.uuid4().hex}")


@pytest.mark.modes("plain")
async def test_a_plan_may_say_the_id_that_its_workflow_has(plans: Plans) -> None:
    own = uuid.uuid4().hex[:12]
    argument = {"plan": {"id": own, "steps": [work("a")]}, "options": {"workspace": str(plans.workspace)}}
    summary = await plans.client.execute_workflow(
        "PlanWorkflow", argument, id=f"plan-{own}", task_queue=plans.queue, execution_timeout=plans.ceiling
    )
    assert summary["status"] == "completed"


def carried(plan: Plan, workspace: Path) -> dict[str, Any]:
    """A Run as `plan resume` sends one."""
    return Run.of(plan, Options(workspace=str(workspace)), Facts(), {}).model_dump(mode="json", exclude_defaults=True)


@workflow.defn(name="Calls")
class Calls:
    """Calls `check_plan` with whatever argument; returns why it was not tried again."""

    @workflow.run
    async def run(self, argument: dict[str, Any]) -> str | None:
        try:
            await workflow.execute_activity(
                "check_plan", argument, start_to_close_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=10)),
            )  # fmt: skip
        except ActivityError as error:
            return RetryState(error.retry_state or 0).name
        return None


@workflow.defn(name="Checks")
class Checks:
    """Has a plan checked as PlanWorkflow does."""

    @workflow.run
    async def run(self, workspace: str) -> int:
        run = Run.of(Plan(id="x", steps=[]), Options(workspace=workspace), Facts(), {})
        return len((await facts_about(run, run.plan, all_tools=False)).problems)


def serving(client: Client, queue: str, fails: Iterator[bool]) -> Worker:
    """A worker whose checks raise an error as long as `fails` says so."""

    def known() -> bool:
        if next(fails):
            raise OSError("the server cannot be asked")
        return False

    checker = PlanChecker({}, search_attributes=known)
    return Worker(
        client, task_queue=queue, workflows=[Calls, Checks], activities=[checker.check_plan],
        workflow_runner=UnsandboxedWorkflowRunner(), activity_executor=ThreadPoolExecutor(2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ({"workspace": "/tmp"}, None),
        ({"plan": {"id": "x y", "steps": []}}, "NON_RETRYABLE_FAILURE"),
        ({"workspace": 1}, "NON_RETRYABLE_FAILURE"),
        ({"workspace": "/tmp", "fieldOfANewerVersion": 1}, "MAXIMUM_ATTEMPTS_REACHED"),
    ],
)
async def test_arguments_that_cannot_be_decoded_are_not_tried_again(
    temporal_client: Client, queue: str, argument: dict[str, Any], why: str | None
) -> None:
    async with serving(temporal_client, queue, iter(lambda: False, None)):
        assert await temporal_client.execute_workflow("Calls", argument, id=queue, task_queue=queue) == why


async def test_a_check_that_is_tried_again_leaves_its_slot_for_workflow_tasks(
    temporal_client: Client, queue: str, workspace: Path
) -> None:
    async with serving(temporal_client, queue, iter((True, True, False))):
        handle = await temporal_client.start_workflow("Checks", str(workspace), id=queue, task_queue=queue)
        assert await handle.result() == 0
    events = [event.event_type async for event in handle.fetch_history_events()]
    assert events.count(EventType.EVENT_TYPE_TIMER_STARTED) == 2

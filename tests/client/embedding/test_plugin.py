"""The plugin in a worker of somebody else's; what its page shows is run as well (tests/test_docs.py)."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError, ChildWorkflowError
from temporalio.worker import Worker

from plansurvive.activities.tools.tool import tool
from plansurvive.client.embedding.plugin import PlansPlugin
from plansurvive.client.listing import list_plans
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from tests.client.embedding.careless import Careless
from tests.kit.waiting import until

CLOCK = {"id": "clock", "tool": "sleep", "args": {"seconds": 0}}


@activity.defn(name="read_file")
async def other_read() -> None:
    """An activity with the name of a tool."""


async def test_a_client_with_another_converter_is_refused(settings: Settings, temporal_client: Client) -> None:
    address = temporal_client.service_client.config.target_host
    with pytest.raises(PlanError) as refused:
        await Client.connect(address, plugins=[PlansPlugin(settings)], data_converter=pydantic_data_converter)
    assert refused.value.code == "CONVERTER_TAKEN"


async def test_names_that_are_taken_are_refused(settings: Settings, temporal_client: Client, queue: str) -> None:
    address = temporal_client.service_client.config.target_host
    client = await Client.connect(address, plugins=[PlansPlugin(settings)])
    with pytest.raises(PlanError, match="named as ours: read_file"):
        Worker(client, task_queue=queue, activities=[other_read])

    @tool
    async def read_file(path: str) -> str:
        """Read.

        Args:
            path: The file.

        Returns:
            Its name.
        """
        return path

    with pytest.raises(PlanError, match="tools of these names already: read_file"):
        PlansPlugin(settings, tools=[read_file])
    with pytest.raises(PlanError, match="to be replaced: raed_file"):
        PlansPlugin(settings, replaced={"raed_file": read_file})


@pytest.mark.parametrize(
    ("plan", "code"),
    [({"steps": 7}, "INVALID_PLAN"), ({"steps": [CLOCK], "named": "plan-a"}, "BAD_PLAN_ID")],
    ids=["no plan", "no id"],
)
async def test_a_plan_that_cannot_start_fails_the_workflow_that_starts_it(
    settings: Settings, temporal_client: Client, queue: str, plan: dict[str, object], code: str
) -> None:
    address = temporal_client.service_client.config.target_host
    client = await Client.connect(address, plugins=[PlansPlugin(settings)])
    named = {"named": f"child-{uuid.uuid4().hex}", **plan}
    async with Worker(client, task_queue=queue, workflows=[Careless]):
        with pytest.raises(WorkflowFailureError) as failed:
            await client.execute_workflow("Careless", named, id=f"careless-{uuid.uuid4().hex}", task_queue=queue)
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == code


async def test_a_plan_of_a_workflow_that_fails_says_so(
    settings: Settings, temporal_client: Client, queue: str, workspace: Path
) -> None:
    address = temporal_client.service_client.config.target_host
    client = await Client.connect(address, plugins=[PlansPlugin(settings, workspace=workspace)])
    step = {"id": "read", "tool": "read_file", "args": {"path": "none"}, "retry": {"attempts": 1}, "critical": True}
    plan = {"named": f"child-{uuid.uuid4().hex}", "steps": [step]}
    async with Worker(client, task_queue=queue, workflows=[Careless]):
        with pytest.raises(WorkflowFailureError) as failed:
            await client.execute_workflow("Careless", plan, id=f"careless-{uuid.uuid4().hex}", task_queue=queue)
    child = failed.value.cause
    assert isinstance(child, ChildWorkflowError)
    cause = child.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "PLAN_FAILED"


@pytest.mark.oldest_server
async def test_a_plan_of_a_workflow_is_listed_as_any_plan_and_a_plan_of_its_steps_is_not(
    settings: Settings, temporal_client: Client, queue: str, workspace: Path
) -> None:
    address = temporal_client.service_client.config.target_host
    client = await Client.connect(address, plugins=[PlansPlugin(settings, workspace=workspace)])
    name = f"child-{uuid.uuid4().hex}"
    inner = {"id": "inner", "tool": "plan", "args": {"steps": [CLOCK]}}
    async with Worker(client, task_queue=queue, workflows=[Careless]):
        await client.execute_workflow(
            "Careless", {"named": name, "steps": [inner]}, id=f"careless-{name}", task_queue=queue
        )

    async def started(*, agents: bool) -> list[str]:
        found = list_plans(temporal_client, agents=agents)
        return [each.plan_id async for each in found if each.plan_id.startswith(name)]

    async def is_indexed() -> bool:
        return len(await started(agents=True)) == 2

    await until(is_indexed, "the plan and that of its step are in the index")
    assert await started(agents=False) == [name]

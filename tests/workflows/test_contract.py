"""The signals, updates and queries of the workflows, as each lists them itself, are those of the contract."""

from __future__ import annotations

import re
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.kit.contract import PAGE, Messages, promised_messages
from tests.kit.driving import Plans, work
from tests.workflows.agents import Serving, call, says, serving
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.modes("plain")


@pytest.fixture
def serve(idle: Plans, make_worker: MakeWorker) -> Serving:
    return serving(idle, make_worker)


async def messages(handle: Any) -> Messages:
    """The handlers that a workflow lists in its metadata, without the SDK's own."""
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    definition = found.definition
    kinds = {
        "signal": definition.signal_definitions,
        "update": definition.update_definitions,
        "query": definition.query_definitions,
    }
    names = {kind: {each.name for each in definitions} for kind, definitions in kinds.items()}
    return {kind: {name for name in each if name and not name.startswith("__")} for kind, each in names.items()}


async def test_every_message_of_a_plan_is_in_the_contract_and_nothing_else(plans: Plans) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    assert await messages(plan.handle) == promised_messages(PAGE.read_text(), "PlanWorkflow")
    await plan.deny("gate")
    await plan.ended()


async def test_every_message_of_an_agent_is_in_the_contract_and_nothing_else(serve: Serving) -> None:
    story = [
        says({"tool_calls": [call("run_command", command="true")]}),
        says({"answer": "done", "confidence": "high"}),
    ]
    async with serve(story) as agents:
        agent = await agents.start("do it")
        view = await agent.until(lambda view: view["pending"], "the command waits for approval")
        assert await messages(agent.handle) == promised_messages(PAGE.read_text(), "AgentWorkflow")
        await agent.deny(view["pending"][0]["stepId"])
        await agent.ended()


@pytest.mark.parametrize(
    ("kind", "name"), [("signal", "files_changed"), ("signal", "unpause"), ("update", "edit"), ("query", "stamps")]
)
def test_a_message_missing_from_the_table_is_missing_from_the_contract(kind: str, name: str) -> None:
    page = PAGE.read_text()
    before = promised_messages(page, "PlanWorkflow")
    rest = re.sub(rf"(?m)^(\|[^|]*)`{name}`", r"\1", page)
    after = promised_messages(f"{rest}\nElsewhere a word like `{name}`.", "PlanWorkflow")
    assert {each: before[each] - after[each] for each in before} == {
        "signal": set(),
        "update": set(),
        "query": set(),
    } | {kind: {name}}

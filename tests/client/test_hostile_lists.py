"""One workflow that somebody started by hand, with anything in its memo or id, must not hide all others from lists."""

from __future__ import annotations

import uuid

import pytest
from temporalio.api.common.v1 import Memo, Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest, TerminateWorkflowExecutionRequest
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.listing import list_plans
from plansurvive.client.verbs import pending
from plansurvive.features.agents import verbs
from tests.kit.waiting import until
from tests.nightly import sampled

JSON = {"encoding": b"json/plain"}
MEMOS = {
    "of an unknown encoding": Payload(metadata={"encoding": b"some/thing"}, data=b"x"),
    "without an encoding": Payload(data=b"x"),
    "that is no JSON": Payload(metadata=JSON, data=b"{"),
    "that is a list": Payload(metadata=JSON, data=b"[1]"),
    "that is a lone surrogate": Payload(metadata=JSON, data=b'"\\ud800"'),
    "that refers to missing content": Payload(
        metadata={"encoding": b"json/external-storage-reference"}, data=b'{"driver_name":"local","driver_claim":{}}'
    ),
}
NAMES = ("title", "steps", "resumes", "request", "planId", "stepId", "endRecord")


async def _start(client: Client, kind: str, workflow_id: str, memo: Payload | None = None) -> None:
    fields = {} if memo is None else dict.fromkeys(NAMES, memo)
    await client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name=kind),
            task_queue=TaskQueue(name=f"queue-{uuid.uuid4().hex}"),
            request_id=uuid.uuid4().hex,
            memo=Memo(fields=fields),
        )
    )


@pytest.mark.parametrize("memo", sampled(MEMOS.values(), 1), ids=list(MEMOS))
async def test_a_memo_that_cannot_be_read_hides_no_other_plan(temporal_client: Client, memo: Payload) -> None:
    tag = uuid.uuid4().hex[:8]
    ours = f"plan-{tag}-ours", f"agent-{tag}-ours"
    for kind, prefix, name in (("PlanWorkflow", "plan", ours[0]), ("AgentWorkflow", "agent", ours[1])):
        await _start(temporal_client, kind, f"{prefix}-{tag}-theirs", memo)
        await _start(temporal_client, kind, name)
    try:

        async def listed() -> bool:
            return set(ours) <= {each.workflow_id async for each in list_plans(temporal_client, agents=True)}

        assert await until(listed, "our plan and our agent are listed")
        assert set(ours) <= {entry.agent_id for entry in await verbs.recorded(temporal_client)}
        assert [each async for each in pending.pending(temporal_client, patience=1.0) if tag in each.plan_id] == []
        assert (await runs.links(temporal_client, f"{tag}-theirs")).resumed_by == []
    finally:
        for kind in ("ours", "theirs"):
            for prefix in ("plan", "agent"):
                await temporal_client.get_workflow_handle(f"{prefix}-{tag}-{kind}").terminate()


@pytest.mark.parametrize("odd", sampled(["", " ", "a b", "../x", "x" * 900, "a\nb", "é", "r2", "-r2", "\u202e"], 2))
async def test_an_odd_id_hides_no_other_plan(temporal_client: Client, odd: str) -> None:
    tag = uuid.uuid4().hex[:8]
    ours, theirs = f"plan-{tag}-ours", [f"plan-{odd}{tag}", f"agent-{odd}{tag}"]
    await _start(temporal_client, "PlanWorkflow", theirs[0])
    await _start(temporal_client, "AgentWorkflow", theirs[1])
    await _start(temporal_client, "PlanWorkflow", ours)
    try:

        async def listed() -> bool:
            return ours in {each.workflow_id async for each in list_plans(temporal_client, agents=True)}

        assert await until(listed, "ours is listed")
        assert ours in {entry.agent_id for entry in await verbs.recorded(temporal_client)}
    finally:
        for name in (ours, *theirs):
            await temporal_client.get_workflow_handle(name).terminate()


async def test_a_plan_that_was_terminated_with_anything_has_ended(temporal_client: Client) -> None:
    tag = uuid.uuid4().hex[:8]
    for number, details in enumerate(MEMOS.values()):
        name = f"{tag}-{number}"
        await _start(temporal_client, "PlanWorkflow", f"plan-{name}")
        await temporal_client.workflow_service.terminate_workflow_execution(
            TerminateWorkflowExecutionRequest(
                namespace=temporal_client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=f"plan-{name}"),
                details=Payloads(payloads=[details]),
            )
        )
        summary = await runs.wait(temporal_client, name)
        assert (summary.status, summary.stopped) == ("cancelled", "terminated from outside")

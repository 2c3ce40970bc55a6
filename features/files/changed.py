"""Which files of an ended plan differ from what it last saw, before it is resumed.

The plan has ended, and its files may be on another machine: a short workflow asks the workers that have them, and is
deleted when its answer has been read.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import RPC_TIMEOUT
from plansurvive.plans.files.file_check import FileDifferences, FilesSeen
from plansurvive.plans.run import Run
from plansurvive.runtime.task_queues import listeners

CEILING = timedelta(seconds=60)
"""How long the files of a plan may take to be compared."""


async def changed_files(client: Client, run: Run, queue: str, seen: FilesSeen) -> list[str]:
    """The files that differ from what the run last saw; none if no worker says so. `queue`: of its workflow."""
    name = plan_id(run.plan.id or "")
    asked = {"planId": name, "queues": [run.home_queue or queue], "seen": seen.model_dump(mode="json")}
    with suppress(RPCError, WorkflowFailureError):
        if not await listeners(client, queue):
            return []
        handle = await client.start_workflow(
            "ChangesWorkflow",
            asked,
            result_type=dict,
            id=f"files-{name}-{uuid.uuid4().hex[:8]}",
            task_queue=queue,
            execution_timeout=CEILING,
            rpc_timeout=RPC_TIMEOUT,
            static_summary=f"files of plan {name}"[:200],
        )
        found = FileDifferences.model_validate(await handle.result())
        await forget(client, handle)
        return found.changed
    return []


async def forget(client: Client, handle: WorkflowHandle[Any, Any]) -> None:
    """Delete a workflow whose answer has been read, so that it does not stand among the plans in Temporal's lists.

    It stays where this client may not delete.
    """
    execution = WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or "")
    deletion = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    with suppress(RPCError):
        await client.workflow_service.delete_workflow_execution(deletion, timeout=RPC_TIMEOUT)

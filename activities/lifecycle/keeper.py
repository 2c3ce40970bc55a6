"""What activities ask of a keeper: a workflow that keeps a line of plans, one for each workspace or label."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.plans.model import Value

RPC_TIMEOUT = timedelta(seconds=5)


class Holder(Protocol):
    """A plan in the line."""

    @property
    def workflow_id(self) -> str: ...
    @property
    def run_id(self) -> str:
        """Of its first run."""


async def ask(client: Client, workflow: str, key: str, request: Value, *, queue: str, summary: str) -> None:
    """Send a request to the keeper of a key, which is started if there is none. Asking again changes nothing."""
    await client.start_workflow(
        workflow,
        id=key,
        task_queue=queue,
        start_signal="ask",
        start_signal_args=[request.model_dump(mode="json")],
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=summary[:200],
        rpc_timeout=RPC_TIMEOUT,
    )


async def has_ended(client: Client, holder: Holder) -> bool:
    """Whether a plan has ended, however it did. Raises RPCError."""
    handle = client.get_workflow_handle(holder.workflow_id, first_execution_run_id=holder.run_id)
    try:
        found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return True
    first = found.raw_description.workflow_execution_info.first_run_id
    return found.status is not WorkflowExecutionStatus.RUNNING or (bool(first) and first != holder.run_id)

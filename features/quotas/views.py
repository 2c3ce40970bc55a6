"""The places of labels as their keepers have them: which plans run, and which wait."""

from __future__ import annotations

from pydantic import ValidationError
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.rpc import RPC_TIMEOUT, translated
from plansurvive.features.quotas.model import QuotaRow

_RUNNING = "WorkflowType = 'QuotaWorkflow' AND ExecutionStatus = 'Running'"


async def rows(client: Client) -> list[QuotaRow]:
    """The labels that plans have a place of, or wait for, by name. Raises NotConnected."""
    try:
        keepers = [execution.id async for execution in client.list_workflows(_RUNNING)]
        found = [row for key in keepers if (row := await _row(client, key)) is not None]
    except RPCError as error:
        raise translated(error, "") from error
    return sorted(found, key=lambda row: row.label)


async def _row(client: Client, key: str) -> QuotaRow | None:
    """None if its line is empty by now, or no worker answers."""
    handle = client.get_workflow_handle(key)
    try:
        answer = await handle.query("places", reject_condition=QueryRejectCondition.NOT_OPEN, rpc_timeout=RPC_TIMEOUT)
        return QuotaRow.model_validate(answer)
    except (WorkflowQueryRejectedError, WorkflowQueryFailedError, ValidationError):
        return None
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.DEADLINE_EXCEEDED):
            return None
        raise

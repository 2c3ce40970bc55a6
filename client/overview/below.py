"""Finds the plans whose agents or child plans await a person: lists show the plan that somebody started."""

from __future__ import annotations

from collections.abc import AsyncIterator

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from client.ids import workflow_id
from client.listing import Listed, list_plans, listed_by
from client.rpc import translated

ASKING_BELOW = (
    "WorkflowType IN ('PlanWorkflow', 'AgentWorkflow') AND ExecutionStatus = 'Running' AND ParentWorkflowId IS NOT NULL"
    " AND PlanPending IS NOT NULL"
)
MAX_BELOW = 1_000
"""Agents and child plans that are looked at."""


async def awaiting_plans(client: Client) -> AsyncIterator[Listed]:
    """The open plans that await a person, themselves or below, as far as the server's index knows. Raises NotConnected.

    A server without our search attributes cannot tell: then all open plans are listed.
    """
    seen: set[str] = set()
    async for listed in list_plans(client, running=True, awaiting=True):
        seen.add(listed.workflow_id)
        yield listed
    for root in sorted(await _roots(client) - seen):
        async for listed in listed_by(client, f"WorkflowId = '{workflow_id(root)}' AND ExecutionStatus = 'Running'"):
            yield listed


async def _roots(client: Client) -> set[str]:
    """Workflow ids of the plans above what awaits a person."""
    found: set[str] = set()
    try:
        async for execution in client.list_workflows(ASKING_BELOW, limit=MAX_BELOW):
            if execution.root_id and "'" not in execution.root_id:
                found.add(execution.root_id)
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise translated(error, "") from error
    return found

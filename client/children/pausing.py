"""Ends the pause of what works for a plan, where decisions are signed: each workflow wants a signature for itself."""

from __future__ import annotations

from contextlib import suppress

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.decisions import authored
from plansurvive.client.ids import workflow_id
from plansurvive.client.rpc import translated
from plansurvive.client.updates import update
from plansurvive.plans.child_state import MAX_NESTING
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.messages import Via


async def release_below(client: Client, plan: str, by: str, via: Via, *, verified: bool, depth: int = 0) -> None:
    """Unpause the agents and child plans of a plan, and theirs, that were paused with it.

    What was paused by itself stays paused. One that has ended meanwhile is left out. Raises NotConnected.
    """
    query = f"ParentWorkflowId = '{workflow_id(plan)}' AND ExecutionStatus = 'Running'"
    try:
        names = [each.id async for each in client.list_workflows(query)]
    except RPCError as error:
        raise translated(error, plan) from error
    for name in names:
        with suppress(PlanError):
            message = {"action": "unpause", "above": True, **authored(by, via, verified=verified)}
            await update(client, name, "control", message)
        if name.startswith("plan-") and depth < MAX_NESTING:
            await release_below(client, name, by, via, verified=verified, depth=depth + 1)

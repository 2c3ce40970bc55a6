"""Takes decisions back: await verbs.withdraw(client, "p", "deploy", by="ann")."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client.children.naming import located
from plansurvive.client.decisions import authored
from plansurvive.client.updates import update
from plansurvive.plans.execution.messages import Via


async def withdraw(
    client: Client, plan: str, step_id: str, *, by: str = "", comment: str = "", via: Via = "", verified: bool = False
) -> str:
    """Take back one's own approval or denial of a step that has not started. Returns the plan's sentence about it.

    A step of a child plan is named by its path, `deploy/upload`, or in the child itself. `via` and `verified`: as in
    `Choice`. Raises Refused with the reason (NOT_DECIDED, TOO_LATE, UNVERIFIED), PlanClosed, and NoWorker as `answer`.
    """
    plan, step_id = await located(client, plan, step_id)
    message = {"stepId": step_id, **({"comment": comment} if comment else {}), **authored(by, via, verified=verified)}
    return str((await update(client, plan, "withdraw", message))["text"])

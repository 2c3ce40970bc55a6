"""Why a step's tool was called: asked of the plan, or read from its record."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client import end_records
from plansurvive.client.rpc import ask
from plansurvive.plans.caching.why import Why
from plansurvive.plans.caching.why import why as answered
from plansurvive.plans.run import Run


async def why(client: Client, plan: str, step_id: str) -> Why:
    """Why a step's tool was called, or which run its result is from. Raises Refused UNKNOWN_STEP."""
    run = await end_records.run_of_ended(client, plan)
    return answered(run or Run.model_validate(await ask(client, plan, "state")), step_id)

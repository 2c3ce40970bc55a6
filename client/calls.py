"""Reads the call that a decision on a step would be about, so that it can be shown and named by its digest."""

from __future__ import annotations

from temporalio.client import Client

from client.rpc import PATIENCE, ask_view
from plans.errors import PlanError
from plans.views.models import BriefView, CallView
from plans.views.queries import BRIEF


async def call(client: Client, plan: str, step_id: str) -> CallView | None:
    """What the step asks for, or would do if it started now; None if that cannot be known.

    Pass its `digest` as `Choice.digest`, to decide about exactly this. None: the plan has no such step, or its worker
    is of an older version and the step does not await approval. Raises NoWorker.
    """
    try:
        return await ask_view(client, plan, CallView, "call", {"stepId": step_id}, patience=PATIENCE)
    except ValueError:  # an empty answer: there is no such step
        return None
    except PlanError as error:
        if error.code != "QUERY_FAILED":
            raise
    view = await ask_view(client, plan, BriefView, "plan", BRIEF)
    found = next((item for item in view.pending if item.step_id == step_id), None)
    return CallView.model_validate(found.model_dump()) if found else None

"""PLANS_DECISIONS=signed on a worker without the feature: what it cannot verify does not count."""

from __future__ import annotations

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError

from plansurvive.features import FEATURES
from plansurvive.runtime.settings import Settings
from tests.features.test_seams import worker_with

OTHERS = [name for name in FEATURES if name != "signing"]


async def test_an_undo_restores_nothing(temporal_client: Client, settings: Settings, queue: str) -> None:
    async with worker_with(temporal_client, settings.with_flags(decisions="signed"), *OTHERS):
        message = {"planId": "p", "undo": True, "dryRun": False, "queues": [queue]}
        with pytest.raises(WorkflowFailureError) as caught:
            await temporal_client.execute_workflow("ChangesWorkflow", message, id="undo-p", task_queue=queue)
    assert isinstance(caught.value.cause, ActivityError)
    assert "no feature of this worker verifies signatures" in str(caught.value.cause.cause)

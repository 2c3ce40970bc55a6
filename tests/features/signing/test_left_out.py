"""PLANS_DECISIONS=signed on a worker without the feature: what it cannot verify does not count."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.features import FEATURES
from plansurvive.features.signing.signer import Signer
from plansurvive.runtime.settings import Settings
from tests.features.test_seams import worker_with
from tests.kit.driving import Plans, step

OTHERS = [name for name in FEATURES if name != "signing"]


async def test_a_start_keeps_no_waiver_and_no_decision_counts(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    signing = settings.with_flags(decisions="signed")
    config = temporal_client.config()
    config["interceptors"] = [Signer(signing)]
    for client in (temporal_client, Client(**config)):
        async with worker_with(client, signing, *OTHERS):
            plans = Plans(client, queue, workspace)
            waived = {"id": "waived", "tool": "delete_file", "args": {"path": "kept"}, "requiresApproval": False}
            plan = await plans.start([waived], {"approveAll": True})
            await plan.until_asked("waived")
            await plan.approve("waived")
            view = await plan.until_logged("refused", "UNSIGNED")
            assert view["unsigned"] is True
            for name, message in (
                ("decide", {"stepId": "waived", "approved": True}),
                ("control", {"action": "clear_session"}),
            ):
                with pytest.raises(WorkflowUpdateFailedError) as caught:
                    await plan.handle.execute_update(name, message)
                assert isinstance(caught.value.cause, ApplicationError)
                assert caught.value.cause.type == "UNSIGNED", name
            assert "awaiting" in step(await plan.view(), "waived")
            # What needs no signature is heard.
            await plan.signal("interrupt")
            await plan.ended()


async def test_an_undo_restores_nothing(temporal_client: Client, settings: Settings, queue: str) -> None:
    async with worker_with(temporal_client, settings.with_flags(decisions="signed"), *OTHERS):
        message = {"planId": "p", "undo": True, "dryRun": False, "queues": [queue]}
        with pytest.raises(WorkflowFailureError) as caught:
            await temporal_client.execute_workflow("ChangesWorkflow", message, id="undo-p", task_queue=queue)
    assert isinstance(caught.value.cause, ActivityError)
    assert "no feature of this worker verifies signatures" in str(caught.value.cause.cause)

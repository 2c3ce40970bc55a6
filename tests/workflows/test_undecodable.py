"""Payloads that cannot be decoded, as messages and start arguments: refused with a code, and nothing waits for ever."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from plansurvive.features.workflow_types import PlanWorkflow
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.runtime.workflow_runner import PASSED_THROUGH
from tests.fuzz.shapes import UNDECODABLE
from tests.kit.driving import Plans, Started, refusals, statuses, work
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker


async def waiting(plans: Plans) -> Started:
    """A plan that awaits an approval."""
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    return plan


@pytest.mark.modes("plain", "uncached")
async def test_signals_that_cannot_be_decoded_are_refused_in_the_log(plans: Plans) -> None:
    plan = await waiting(plans)
    for payload in UNDECODABLE.values():
        await plan.signal("approve", RawValue(payload))
    await plan.approve("gate", by="ann")
    view = await plan.ended()
    assert statuses(view) == {"gate": "completed"}
    assert len([text for text in refusals(view) if text.startswith("REFUSED:UNDECODABLE approve:")]) == len(UNDECODABLE)


@pytest.mark.modes("plain", "uncached")
async def test_updates_that_cannot_be_decoded_are_refused_with_a_code(plans: Plans) -> None:
    plan = await waiting(plans)
    for payload in UNDECODABLE.values():
        for update in ("decide", "control", "edit", "regenerate"):
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await plan.handle.execute_update(update, RawValue(payload))
            assert isinstance(caught.value.cause, ApplicationError)
            assert caught.value.cause.type == "UNDECODABLE", caught.value.cause
    await plan.approve("gate")
    assert statuses(await plan.ended()) == {"gate": "completed"}


@pytest.mark.parametrize("kind", ["PlanWorkflow", "AgentWorkflow", "ChangesWorkflow"])
@pytest.mark.modes("plain")
async def test_a_start_that_cannot_be_decoded_fails_the_plan(plans: Plans, kind: str) -> None:
    for number, payload in enumerate(UNDECODABLE.values()):
        with pytest.raises(WorkflowFailureError) as caught:
            await plans.client.execute_workflow(
                kind, RawValue(payload), id=f"plan-{plans.queue}-{number}", task_queue=plans.queue,
                execution_timeout=plans.ceiling,
            )  # fmt: skip
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "INVALID_PLAN"
        assert "UNDECODABLE" in caught.value.cause.message


@pytest.mark.modes("plain")
async def test_a_client_with_another_state_directory_is_refused_and_told_why(plans: Plans, tmp_path: Path) -> None:
    plan = await waiting(plans)
    other = elsewhere(plans.client, tmp_path / "other")
    edit = {"edits": [{"op": "set", "stepId": "gate", "path": "args.name", "value": "x" * 70_000}]}
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await other.get_workflow_handle(plan.id).execute_update("edit", edit)
    assert "PLANS_STATE_DIR" in str(caught.value.cause)
    await plan.approve("gate")
    assert statuses(await plan.ended()) == {"gate": "completed"}


def elsewhere(client: Client, directory: Path, threshold: int = 1_024) -> Client:
    """The client with a storage of its own."""
    config = client.config()
    config["data_converter"] = converter(LocalDirectory(directory), threshold)
    return Client(**config)


def values_of(client: Client) -> Path:
    """The directory of the client's storage."""
    storage = client.data_converter.external_storage
    assert storage is not None
    driver = storage.drivers[0]
    assert isinstance(driver, LocalDirectory)
    return driver.directory


def replayer(client: Client) -> Replayer:
    """Replays histories with the client's storage."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    runner = SandboxedWorkflowRunner(restrictions=restrictions)
    return Replayer(workflows=[PlanWorkflow], workflow_runner=runner, data_converter=client.data_converter)


@pytest.mark.modes("plain", "uncached")
@pytest.mark.on_server("replays its history")
async def test_a_refusal_for_missing_content_stays_one_when_the_content_appears(plans: Plans, tmp_path: Path) -> None:
    plan = await waiting(plans)
    other = elsewhere(plans.client, tmp_path / "other")
    message = {"stepId": "gate", "by": "bob", "comment": plan.id * 100}
    await other.get_workflow_handle(plan.id).signal("approve", message)
    await plan.until_logged("refused", "PLANS_STATE_DIR")
    shutil.copytree(tmp_path / "other", values_of(plans.client), dirs_exist_ok=True)
    await replayer(plans.client).replay_workflow(await plan.handle.fetch_history())
    await plan.approve("gate", by="ann")
    view = await plan.ended()
    assert [entry["text"] for entry in view["log"] if entry["kind"] == "approved"] == ["step 'gate' approved by ann"]
    await replayer(plans.client).replay_workflow(await plan.handle.fetch_history())


@pytest.mark.parametrize("sent", ["signal", "update"])
@pytest.mark.modes("plain")
@pytest.mark.on_server("replays its history")
async def test_a_replay_waits_for_content_that_was_there_the_first_time(
    plans: Plans, tmp_path: Path, sent: str
) -> None:
    plan = await waiting(plans)
    here = elsewhere(plans.client, values_of(plans.client)).get_workflow_handle(plan.id)
    message = {"stepId": "gate", "by": "bob", "comment": plan.id * 100}
    if sent == "signal":
        await here.signal("approve", message)
    else:
        await here.execute_update("decide", message | {"approved": True})
    assert statuses(await plan.ended()) == {"gate": "completed"}
    history = await plan.handle.fetch_history()
    empty = elsewhere(plans.client, tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="no longer in the storage"):
        await replayer(empty).replay_workflow(history)
    await replayer(plans.client).replay_workflow(history)


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_start_waits_for_a_storage_that_is_out_of_reach(
    make_worker: MakeWorker, idle: Plans, tmp_path: Path
) -> None:
    values = tmp_path / "mounted later"
    shared = elsewhere(idle.client, values)
    steps = [work("a", description="x" * 2_000)]
    request = {"plan": {"steps": steps}, "options": {"workspace": str(idle.workspace)}}
    handle = await shared.start_workflow("PlanWorkflow", request, id=f"plan-{idle.queue}", task_queue=idle.queue)
    values.rename(tmp_path / "away")
    async with make_worker(client=shared):
        await until(lambda: _attempts(handle), "the workflow task is tried again")
        (tmp_path / "away").rename(values)
        await handle.result()


async def _attempts(handle: WorkflowHandle[Any, Any]) -> bool:
    return (await handle.describe()).raw_description.pending_workflow_task.attempt > 1

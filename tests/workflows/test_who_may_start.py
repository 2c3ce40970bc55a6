"""PLANS_DECISIONS=signed: no workflow type lets somebody act who has the server's port, but not the key."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.client import runs
from plansurvive.features.audit.files import folder_of
from plansurvive.features.notify.outbox import Outbox
from plansurvive.features.notify.rules import News
from plansurvive.features.signing.model import SIGNED_WORKFLOWS
from plansurvive.features.signing.signer import Signer, signed
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.plans.signature import Signature
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key
from tests.kit.driving import Plans, Started, work
from tests.kit.sinks import targets_file, webhook_sink
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.modes("plain"), pytest.mark.uses("signing")]
HARMLESS = {
    "WorkspaceLockWorkflow": {"has_ended"},  # asks the server; who may terminate it may let two plans in, signed or not
    "PruneWorkflow": {"prune"},  # bounded by the worker's settings; below
    "NotifyWorkflow": {"notify"},  # sends only what a worker signed; below
    "QuotaWorkflow": {"ended_of_quota"},  # asks the server; gives places as locks do
    "LimitsWorkflow": set[str](),  # who may terminate it starts every count anew, signed or not
}
"""Types whose starts are not signed, and the only activities that they may call: each does no harm when forged, or none
that a signature would keep away (docs/security.md)."""


@pytest.fixture
def owner(temporal_client: Client, settings: Settings) -> Client:
    """A client of the key's owner: as `runtime.connect` makes it with PLANS_DECISIONS=signed."""
    config = temporal_client.config()
    config["interceptors"] = [Signer(settings)]
    return Client(**config)


def activities(kind: type) -> set[str]:
    """The names of the activities in the module of a workflow type."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(kind) or kind)))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]  # fmt: skip
    named = ("execute_activity", "start_activity", "execute_local_activity", "start_local_activity")
    names = {ast.literal_eval(call.args[0]) for call in calls if call.func.attr in named}  # type: ignore[attr-defined]
    return {str(name) for name in names}


@pytest.mark.parametrize("kind", WORKFLOWS, ids=lambda kind: kind.__name__)
def test_every_workflow_type_checks_who_starts_it_or_does_no_harm(kind: type) -> None:
    if kind.__name__ not in SIGNED_WORKFLOWS:
        assert activities(kind) == HARMLESS[kind.__name__], "sign its starts, or say why a forged one does no harm"


async def changed(plans: Plans) -> Started:
    """A plan that has overwritten a file."""
    (plans.workspace / "orig.txt").write_text("ORIGINAL")
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "orig.txt"}},
        {"id": "write", "tool": "write_file", "args": {"path": "orig.txt", "content": "new"}, "dependsOn": ["read"]},
    ]
    started = await plans.start(steps)
    assert (await started.ended())["status"] == "completed"
    return started


async def test_an_undo_without_the_key_restores_nothing(
    idle: Plans, owner: Client, settings: Settings, make_worker: MakeWorker
) -> None:
    async with make_worker(decisions="signed"):
        plan = await changed(idle)
        name = plan.id.removeprefix("plan-")
        message = {"planId": name, "undo": True, "dryRun": False, "queues": [idle.queue]}
        mine = private_key(settings)
        forged = {
            "unsigned": message,
            "of another workflow": signed(mine, "start", f"undo-{name}x", "", message),
            "of another undo": {**signed(mine, "start", f"undo-{name}", "", {**message, "stepId": "read"}), **message},
            "with the digest of another": {
                **signed(mine, "start", f"undo-{name}", "", {**message, "partly": True}), "message": "0" * 64
            },
        }  # fmt: skip
        for what, sent in forged.items():
            for partly in (False, True):
                with pytest.raises(WorkflowFailureError) as caught:
                    await idle.client.execute_workflow(
                        "ChangesWorkflow", {**sent, "partly": partly}, id=f"undo-{name}", task_queue=idle.queue
                    )
                assert isinstance(caught.value.cause, ActivityError), what
                assert isinstance(caught.value.cause.cause, ApplicationError)
                assert caught.value.cause.cause.type == "UNSIGNED", what
        assert (idle.workspace / "orig.txt").read_text() == "new"
        # Control: the owner's undo.
        assert (await runs.undo(owner, plan.id)).restored
        assert (idle.workspace / "orig.txt").read_text() == "ORIGINAL"


@pytest.mark.on_server("resets")
async def test_a_signed_undo_that_is_copied_from_the_history_restores_nothing(
    idle: Plans, owner: Client, make_worker: MakeWorker
) -> None:
    """Within the minutes for which its signature counts; also of an undo that was refused, and by a reset."""

    async def forged() -> None:
        with pytest.raises(WorkflowFailureError) as caught:
            await idle.client.execute_workflow("ChangesWorkflow", copied, id=name, task_queue=idle.queue)
        assert isinstance(caught.value.cause, ActivityError)
        assert "UNSIGNED: only signed undos count here: it was started before" in str(caught.value.cause.cause)

    async with make_worker(decisions="signed"):
        plan = await changed(idle)
        file, name = idle.workspace / "orig.txt", f"undo-{plan.id.removeprefix('plan-')}"
        file.write_text("by hand")
        assert (await runs.undo(owner, plan.id)).refused
        copied = await started_with(idle.client, name)
        file.write_text("new")
        await forged()
        assert file.read_text() == "new"
        # Control: the owner's undo, which is signed anew.
        assert (await runs.undo(owner, plan.id)).restored
        assert file.read_text() == "ORIGINAL"
        copied = await started_with(idle.client, name)
        await forged()
        await idle.client.workflow_service.reset_workflow_execution(ResetWorkflowExecutionRequest(
            namespace=idle.client.namespace, workflow_execution=WorkflowExecution(workflow_id=name),
            workflow_task_finish_event_id=4, request_id="again",
        ))  # fmt: skip
        with pytest.raises(WorkflowFailureError):
            await idle.client.get_workflow_handle(name).result()
        assert file.read_text() == "ORIGINAL"


async def started_with(client: Client, name: str) -> Any:
    """What the newest run of a workflow was started with, as its history has it."""
    events = (await client.get_workflow_handle(name).fetch_history()).events
    payloads = events[0].workflow_execution_started_event_attributes.input.payloads
    return (await client.data_converter.decode(list(payloads)))[0]


async def test_with_open_decisions_an_unsigned_undo_counts(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker():
        plan = await changed(idle)
        assert (await runs.undo(idle.client, plan.id)).restored


@pytest.mark.slow
@pytest.mark.on_server("lists")
async def test_a_prune_that_anybody_sends_removes_no_audit_record_and_nothing_younger_than_the_settings_say(
    idle: Plans, settings: Settings, make_worker: MakeWorker
) -> None:
    folder = folder_of(settings.state_dir, "plan-gone")
    folder.mkdir(parents=True)
    ages = {"audit-1.jsonl": timedelta(days=900), "SUMMARY.md": timedelta(hours=40)}
    for name, age in ages.items():
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - age.total_seconds(),) * 2)
    order = {"olderThan": 3_600, "records": 3_600}
    for hours, left in ((48.0, {"audit-1.jsonl", "SUMMARY.md"}), (24.0, {"audit-1.jsonl"})):
        async with make_worker(decisions="signed", prune_hours=hours):
            await idle.client.execute_workflow(
                "PruneWorkflow", order, id=f"prune-{idle.queue}-{hours:g}", task_queue=idle.queue
            )
        assert {path.name for path in folder.glob("*")} == left


async def test_nobody_is_told_what_no_worker_has_signed(
    idle: Plans, settings: Settings, make_worker: MakeWorker, state_dir: Path
) -> None:
    """By a signal, and by a start with a state of its own, under a plan's name."""
    at = "2026-11-25T00:00:00Z"
    news = {
        "planId": "deploy", "workflowId": "plan-deploy", "runId": "0" * 36, "root": "plan-deploy", "title": "Deploy",
        "rules": [{"on": ["failed"], "to": "hook"}], "ended": "failed", "reason": "call +1 555 0100", "at": at,
    }  # fmt: skip
    forged = Outbox()
    forged.take(News.model_validate(news), datetime.now(UTC))
    for notice in forged.notices:  # a signature by somebody else, and one of another text
        notice.proof = Signature(id="0" * 32, time=0, value="0" * 128)
    with webhook_sink() as sink:
        file = targets_file(state_dir / "notify.toml", hook=sink.url)
        for decisions, arrive in (("signed", 0), ("open", 1)):  # control: unsigned, it is said; it is one message
            async with make_worker(decisions=decisions, notify=file):
                sent = await idle.client.start_workflow(
                    "NotifyWorkflow", id=f"notify-1-{decisions}", task_queue=idle.queue, start_signal="news",
                    start_signal_args=[news],
                )  # fmt: skip
                state = forged.model_dump(mode="json")
                made = await idle.client.start_workflow(
                    "NotifyWorkflow", state, id=f"notify-2-{decisions}", task_queue=idle.queue
                )
                outcome = "said" if arrive else "withdrawn"
                for handle in (sent, made):
                    await until(functools.partial(_came_to, handle, outcome), f"it is {outcome}")
                    await handle.terminate()
            assert len(sink.events) == arrive, decisions
        # And what a plan says itself is said.
        async with make_worker(decisions="signed", notify=file):
            await (await idle.start([work("a")], notify="hook", title="Nightly")).ended()
            await until(lambda: len(sink.events) == 2, "the plan's own news arrives")
            assert sink.events[1]["type"].endswith(".completed")


async def _came_to(handle: WorkflowHandle[Any, Any], outcome: str) -> bool:
    return bool((await handle.query("told"))[outcome])

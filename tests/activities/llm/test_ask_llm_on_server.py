"""`ask_llm` as Temporal runs it: waits as told, tries again, ends its connection when cancelled; no key in history."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.llm.snapshot import SnapshotRequest
from plansurvive.runtime.settings import Settings
from tests.activities.asking import CANARY, asking, request
from tests.activities.asking_workflows import AskOnce, LookOnce
from tests.kit.driving import CEILING
from tests.kit.waiting import until


def listening(client: Client, queue: str, activity: Any) -> Worker:
    """A worker that asks."""
    return Worker(
        client,
        task_queue=queue,
        workflows=[AskOnce],
        activities=[activity],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=200),
    )


async def begin(client: Client, queue: str, asked: LlmRequest) -> WorkflowHandle[Any, LlmAnswer]:
    """The workflow, begun."""
    return await client.start_workflow(
        AskOnce.run, asked, id=f"ask-{uuid.uuid4().hex}", task_queue=queue, execution_timeout=CEILING
    )


@pytest.mark.slow
async def test_a_busy_and_broken_endpoint_is_asked_until_it_answers(
    temporal_client: Client, queue: str, tmp_path: Path
) -> None:
    replies = [
        {"reply": {"status": 429, "headers": {"retry-after-ms": "50"}}},
        {"reply": {"fault": "reset"}},
        {"reply": {"status": 500, "error": f"it was {CANARY}"}},
        {"reply": {"json": {"a": 1}}},
    ]
    with asking(replies, tmp_path) as scene:
        async with listening(temporal_client, queue, scene.ask.ask_llm):
            handle = await begin(temporal_client, queue, request())
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
            assert "given up after 3 attempts" in str(caught.value.cause.__cause__)
            again = await begin(temporal_client, queue, request(key="again"))
            assert (await again.result()).text == '{"a": 1}'
        for each in (handle, again):
            assert "canary" not in (await each.fetch_history()).to_json()


async def test_a_final_failure_reaches_the_workflow_with_its_code_and_what_it_took(
    temporal_client: Client, queue: str, tmp_path: Path
) -> None:
    with asking([{"reply": {"refusal": f"no, {CANARY}"}}], tmp_path) as scene:
        async with listening(temporal_client, queue, scene.ask.ask_llm):
            handle = await begin(temporal_client, queue, request())
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
        assert isinstance(caught.value.cause, ActivityError)
        cause = caught.value.cause.cause
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.details[0]["usage"]["calls"], len(scene.llm.bodies)) == ("LLM_REFUSED", 1, 1)
        assert "canary" not in (await handle.fetch_history()).to_json()


async def test_cancelling_closes_the_connection(temporal_client: Client, queue: str, tmp_path: Path) -> None:
    with asking([{"reply": {"fault": "hang"}}], tmp_path, timeout=60) as scene:
        async with listening(temporal_client, queue, scene.ask.ask_llm):
            handle = await begin(temporal_client, queue, request())
            await until(lambda: scene.llm.bodies, "the LLM is asked")
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            await until(lambda: scene.llm.play.gone == 1, "the connection is closed")


async def test_the_worker_offers_both_activities_with_its_settings(
    temporal_client: Client, environ: dict[str, str], workspace: Path
) -> None:
    from plansurvive.worker import build

    (workspace / "notes.txt").write_text(f"the key is {CANARY}\n")
    script = Script.of({"model": "demo", "key": CANARY, "exchanges": [{"reply": {"json": {"a": 1}}}]})
    with ScriptedLlm(script) as llm:
        told = {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
        settings = Settings.read(environ | told)
        workflows = (AskOnce, LookOnce)
        async with build(temporal_client, settings, {}, indexed=True, workflows=workflows):
            handle = await begin(temporal_client, settings.task_queue, request())
            assert (await handle.result()).text == '{"a": 1}'
            taken = await temporal_client.execute_workflow(
                LookOnce.run,
                SnapshotRequest(workspace=str(workspace)),
                id=f"look-{uuid.uuid4().hex}",
                task_queue=settings.task_queue,
                execution_timeout=CEILING,
            )
            assert "the key is [secret]" in taken.text

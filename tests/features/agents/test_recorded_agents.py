"""The history of agents made anew from the server's record: how each run ended, whatever became of its worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowHandle

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.features.agents import verbs
from plansurvive.features.agents.model.history import Entry
from tests.kit.driving import Started
from tests.kit.waiting import until
from tests.test_worker import line, worker_process

Handle = WorkflowHandle[object, object]
ASKS = {"reply": {"json": {"tool_calls": [{"tool": "run_command", "args": {"command": "true"}}]}}, "times": 0}
PLAN = {"plan": {"steps": [{"id": "ask", "tool": "run_command", "args": {"command": "true"}}]}}
AGENT = {"order": {"request": "Run a command."}}
WORKFLOWS = {"PlanWorkflow": PLAN, "AgentWorkflow": AGENT}
Ending = Callable[[Handle], Awaitable[object]]


async def _nothing(_: Handle) -> None:
    """Its worker dies, that is all."""


ENDINGS: dict[str, tuple[Ending, str, float | None]] = {
    "worker died": (_nothing, "spawned", None),
    "cancelled": (lambda handle: handle.cancel(), "interrupted", None),
    "terminated": (lambda handle: handle.terminate(), "interrupted", None),
    "interrupted": (lambda handle: handle.signal("interrupt"), "interrupted", None),
    "timed out": (_nothing, "timeout", 4.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORKFLOWS)
async def test_a_run_is_found_in_the_servers_record_as_it_ended(
    environ: dict[str, str], temporal_client: Client, queue: str, kind: str
) -> None:
    with ScriptedLlm(Script.of([ASKS])) as llm:
        talking = {**environ, "OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "none", "PLANS_MODEL": "demo"}
        async with worker_process(talking) as process:
            await line(process)
            runs = {name: await _waiting(temporal_client, queue, kind, name) for name in ENDINGS}
            for name, (end, _, _) in ENDINGS.items():
                await end(runs[name].handle)
            wanted = {runs[name].id: status for name, (_, status, _) in ENDINGS.items()}
            await until(lambda: _found(temporal_client, wanted), "all have ended but one")
            process.kill()
            await process.wait()
    entries = await _found(temporal_client, wanted)
    died = entries[runs["worker died"].id]
    assert died.completion_timestamp is None
    assert all(entry.completion_timestamp for entry in entries.values() if entry != died)
    assert {entry.agent_type for entry in entries.values()} == {"plan" if kind == "PlanWorkflow" else "general-purpose"}


async def _waiting(client: Client, queue: str, kind: str, ending: str) -> Started:
    """A run that waits for an approval."""
    seconds, prefix = ENDINGS[ending][2], "plan" if kind == "PlanWorkflow" else "agent"
    started = Started(client, f"{prefix}-{queue}-{ending.replace(' ', '-')}")
    limit = timedelta(seconds=seconds) if seconds else None
    await client.start_workflow(kind, WORKFLOWS[kind], id=started.id, task_queue=queue, execution_timeout=limit)
    if limit is None:
        await started.until(lambda view: view["pending"], "it asks")
    return started


async def _found(client: Client, wanted: dict[str, str]) -> dict[str, Entry]:
    """The entries of the runs, once all are as they should be."""
    entries = {entry.agent_id: entry for entry in await verbs.recorded(client) if entry.agent_id in wanted}
    return entries if {name: entry.status for name, entry in entries.items()} == wanted else {}

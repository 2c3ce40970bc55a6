"""Who listens to a queue, and whether they see the directories of this machine."""

from __future__ import annotations

import socket
from pathlib import Path

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from plansurvive.features.workflow_types import PlanWorkflow
from plansurvive.runtime.task_queues import WORKER, listeners, serves_this_machine
from tests.client.cli.command import plan, written
from tests.kit.waiting import until


@activity.defn
async def nothing() -> None:
    """Does nothing: a worker must have something to do."""


def from_another_machine(client: Client, queue: str) -> Worker:
    """A worker as one in a container would be: same server, another host name."""
    identity = f"{WORKER}1@elsewhere"
    return Worker(
        client,
        task_queue=queue,
        identity=identity,
        workflows=[PlanWorkflow],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )


async def test_a_worker_of_this_machine_shares_its_directories(
    temporal_client: Client, queue: str, worker: Worker
) -> None:
    await until(lambda: listeners(temporal_client, queue), "the worker listens")
    assert (await listeners(temporal_client, queue))[0].endswith(f"@{socket.gethostname()}")
    assert await serves_this_machine(temporal_client, queue)


async def test_a_queue_nobody_listens_to_is_taken_to_be_served_here(temporal_client: Client, queue: str) -> None:
    assert await serves_this_machine(temporal_client, queue)


async def test_a_worker_elsewhere_is_sent_the_workspace_as_it_was_named(
    temporal_client: Client, queue: str, environ: dict[str, str], tmp_path: Path
) -> None:
    file = written(tmp_path / "wait.json", {"steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 1}}]})
    async with from_another_machine(temporal_client, queue):
        await until(lambda: listeners(temporal_client, queue), "the worker listens")
        started = await plan(environ, "start", file, "--workspace", "/only/there", "--json")
        assert started.code == 0, started.err
        assert await workspace_of(temporal_client, started.json["workflowId"]) == "/only/there"
        started = await plan(environ, "start", file, "--json")
        assert await workspace_of(temporal_client, started.json["workflowId"]) is None


async def workspace_of(client: Client, workflow_id: str) -> str | None:
    """The workspace a plan was started with."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    given = history.events[0].workflow_execution_started_event_attributes.input.payloads
    [request] = await client.data_converter.decode(given)
    workspace: str | None = request["options"].get("workspace")
    return workspace

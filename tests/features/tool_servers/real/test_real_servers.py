"""Tool servers of package registries, confined as mcp.toml says: that they start, work, and see no more than they may.

Needs the registries once; left to the nightly run.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.features.tool_servers.real.real import real_server
from tests.features.tool_servers.serving import Serving

pytestmark = pytest.mark.slow


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """A place for servers, with an empty workspace."""
    for name in ("workspace", "state", "outside"):
        (tmp_path / name).mkdir()
    return Serving(tmp_path)


async def test_the_filesystem_server_works_in_the_workspace_and_nowhere_else(serving: Serving) -> None:
    outside = serving.place / "outside" / "file.txt"
    outside.write_text("not for plans")
    async with serving.servers(real_server("filesystem")) as servers:
        assert {"read_text_file", "write_file"} <= {tool.name for tool in await servers.list_tools("x")}
        target = str(serving.workspace / "note.txt")
        await serving.call(servers, "write_file", path=target, content="hello")
        assert (serving.workspace / "note.txt").read_text() == "hello"
        assert "hello" in json.dumps(await serving.call(servers, "read_text_file", path=target))
        error = await serving.error(servers, "read_text_file", path=str(outside))
    assert error.code == "MCP_ERROR"


async def test_the_git_server_reads_and_commits_in_the_workspace(serving: Serving) -> None:
    a_repository(serving.workspace)
    async with serving.servers(real_server("git")) as servers:
        path = str(serving.workspace)
        assert "a.txt" in json.dumps(await serving.call(servers, "git_status", repo_path=path))
        assert "first" in json.dumps(await serving.call(servers, "git_log", repo_path=path))


def a_repository(place: Path) -> None:
    """A repository with one commit and a change."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (place / "a.txt").write_text("a")
    for words in (["init", "--quiet", "."], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], cwd=place, check=True)
    (place / "a.txt").write_text("b")


async def test_a_server_with_an_older_library_keeps_a_database_in_the_workspace(serving: Serving) -> None:
    async with serving.servers(real_server("sqlite")) as servers:
        await serving.call(servers, "create_table", query="CREATE TABLE t (name TEXT)")
        await serving.call(servers, "write_query", query="INSERT INTO t VALUES ('ann')")
        assert "ann" in json.dumps(await serving.call(servers, "read_query", query="SELECT * FROM t"))
        assert "missing" in json.dumps(await serving.call(servers, "read_query", query="SELECT * FROM missing"))
    assert (serving.workspace / "data.db").exists()


async def test_the_time_server_needs_neither_files_nor_network(serving: Serving) -> None:
    async with serving.servers(real_server("time")) as servers:
        found = await asyncio.gather(
            *(serving.call(servers, "get_current_time", timezone="Europe/Berlin") for _ in range(10))
        )
    assert all("Europe/Berlin" in json.dumps(each) for each in found)

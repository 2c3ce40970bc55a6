"""`plan watch-files`: a plan is told of what others change in its files, and of nothing it did itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client import runs
from plansurvive.client.watchers.file_watcher import watch_files
from tests.client.cli.command import line_with, plan, running
from tests.kit.driving import Plans, Started
from tests.kit.waiting import PATIENCE, until

MAKE: dict[str, Any] = {"id": "make", "tool": "write_file", "args": {"path": "x", "content": "one"}}
GATE: dict[str, Any] = {"id": "gate", "tool": "sleep", "args": {"seconds": 0.01}, "requiresApproval": True}
LATER: dict[str, Any] = {
    "id": "later", "tool": "write_file", "args": {"path": "y", "content": "y"}, "dependsOn": ["make", "gate"],
}  # fmt: skip


async def begun(client: Client, queue: str, workspace: Path) -> Started:
    """A plan that has made x and waits."""
    started = await Plans(client, queue, workspace).start([MAKE, GATE, LATER])
    await started.until_status("make", "completed")
    return started


async def watched(client: Client, started: Started) -> tuple[asyncio.Task[None], list[list[str]]]:
    """The watching of a plan's files, which has begun, and the changes that it tells."""
    said, told = list[str](), list[list[str]]()

    async def watch() -> None:
        async for paths in watch_files(client, started.id, said.append):
            told.append(paths)

    watching = asyncio.create_task(watch())
    await until(lambda: said, "the watching has begun")
    return watching, told


@pytest.mark.slow
@pytest.mark.in_turn
async def test_changes_by_others_are_told_and_the_plan_s_own_are_not(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    started = await begun(temporal_client, queue, workspace)
    watching, told = await watched(temporal_client, started)
    (workspace / "unknown").write_text("nobody asked")
    (workspace / "x").touch()
    (workspace / "x").write_text("theirs")
    await until(lambda: told == [["x"]], "the change is told")
    assert (await runs.stamps(temporal_client, started.id))["x"].state == "stale"
    await started.approve("gate")
    assert (await started.ended())["status"] == "completed"
    async with asyncio.timeout(PATIENCE):
        await watching
    assert told == [["x"]]
    assert (await runs.stamps(temporal_client, started.id))["y"].state == "known"


@pytest.mark.slow
async def test_the_command_tells_a_deleted_file(
    environ: dict[str, str], temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    started = await begun(temporal_client, queue, workspace)
    async with running(environ, "watch-files", started.id) as process:
        assert process.stderr
        async with asyncio.timeout(PATIENCE):
            while b"Watching" not in await process.stderr.readline():
                pass
        (workspace / "x").unlink()
        assert "x was changed by others" in await line_with(process, "changed by others")
        await started.approve("gate")
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0


async def test_no_such_plan_is_exit_code_4(environ: dict[str, str], worker: Worker) -> None:
    assert (await plan(environ, "watch-files", "nowhere")).code == 4


@pytest.mark.slow
async def test_a_name_that_is_not_utf_8_does_not_end_the_watching(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    started = await begun(temporal_client, queue, workspace)
    watching, told = await watched(temporal_client, started)
    os.mknod(os.fsencode(workspace) + b"/odd\xff")
    (workspace / "x").write_text("theirs")
    await until(lambda: told == [["x"]] or watching.done(), "the change is told")
    assert (told, watching.done()) == ([["x"]], False)
    await started.approve("gate")
    await started.ended()
    async with asyncio.timeout(PATIENCE):
        await watching

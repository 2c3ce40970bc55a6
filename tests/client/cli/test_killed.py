"""`plan undo` and `plan prune` killed in the middle, the command, the worker or both, and run again: nothing is lost,
nothing is left half, and what is said of it is true. Real processes and SIGKILL.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.background_worker import stop_workers
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.runtime.value_store import ValueStore
from tests.client.cli.command import Ended, plan, running, written
from tests.kit.waiting import until
from tests.nightly import only_nightly
from tests.test_worker import worker_process

pytestmark = pytest.mark.slow
Environ = dict[str, str]
FILES = 400
"""Files of each kind: so many that an undo takes long enough to be killed at a chosen one."""
STRAYS = 2_000
"""Stored values that nothing refers to."""
WRITES = f"for i in $(seq {FILES}); do echo new > made-$i.txt; echo new > old-$i.txt; done"


@pytest_asyncio.fixture(autouse=True)
async def none_left(settings: Settings) -> AsyncIterator[None]:
    """A command that finds no worker starts one."""
    yield
    await stop_workers(settings.with_flags(grace=0))


async def serves(client: Client, queue: str) -> None:
    await until(lambda: listeners(client, queue), "a worker polls")


async def comes(condition: Callable[[], bool], over: Callable[[], bool]) -> None:
    """Wait for a condition that may hold for a few milliseconds only, or for the end of what it is about."""
    await until(lambda: condition() or over(), "what is waited for comes, or is over", patience=120, every=0.001)


async def killed_now(command: asyncio.subprocess.Process) -> None:
    """Kill the command, unless its work was over between the look and the kill: there is nothing to lose then."""
    with suppress(ProcessLookupError):
        command.kill()
    await command.wait()


async def once_more(environ: Environ, name: str) -> Ended:
    """`plan undo`, once the one before is over: a worker that died is noticed after some seconds."""

    async def look() -> Ended | None:
        ended = await plan(environ, "undo", name)
        return None if "UNDO_RUNNING" in ended.err else ended

    found: Ended = await until(look, "the undo that was killed is over")
    return found


def made(workspace: Path) -> int:
    return sum(path.name.startswith("made-") for path in workspace.iterdir())


def is_as_before(workspace: Path) -> bool:
    """Whether the files are those from before the plan, and no others, hidden ones included."""
    names = {path.name for path in workspace.iterdir()}
    wanted = {f"old-{number}.txt" for number in range(1, FILES + 1)}
    return names == wanted and {(workspace / name).read_text() for name in names} == {"before"}


@pytest.mark.parametrize(
    ("killed", "left"),
    [
        ("worker", FILES - 1),
        ("worker", FILES // 2),
        ("command", FILES // 2),
        only_nightly("both", FILES // 2),
        ("both", 0),
    ],
)
async def test_an_undo_killed_at_any_file_is_finished_and_told_truthfully(
    environ: Environ, temporal_client: Client, queue: str, workspace: Path, tmp_path: Path, killed: str, left: int
) -> None:
    environ |= {"PLANS_UNDO": "full"}
    for number in range(1, FILES + 1):
        (workspace / f"old-{number}.txt").write_text("before")
    name = f"killed-{uuid.uuid4().hex[:8]}"
    writes = {"id": "w", "tool": "run_command", "args": {"command": WRITES}, "requiresApproval": False}
    async with worker_process(environ) as worker:
        await serves(temporal_client, queue)
        done = await plan(environ, "run", "--yes", written(tmp_path / "plan.json", {"id": name, "steps": [writes]}))
        assert done.code == 0, done
        assert made(workspace) == FILES
        async with running(environ, "undo", name) as command:
            await comes(lambda: made(workspace) <= left, lambda: command.returncode is not None)
            if killed != "command":
                worker.kill()
                await worker.wait()
            if killed != "worker":
                await killed_now(command)
            async with worker_process(environ):
                if killed == "worker":  # the command goes on when a worker is there again, and says all that was done
                    out, err = await asyncio.wait_for(command.communicate(), 120)
                    assert (command.returncode, err.decode()) == (0, f"{2 * FILES} undone.\n")
                    assert out.count(b"\n") == 2 * FILES
                again = await once_more(environ, name)
                assert again.code == 0, again
                assert again.err.startswith((f"Nothing to undo: `plan undo {name}` ", f"{2 * FILES} undone.\n")), again
                assert is_as_before(workspace)
                shown = await plan(environ, "files", name, "--no-diff")
                assert shown.out.startswith("w (run_command), undone since\n")
                last = (await plan(environ, "undo", name)).err
                assert last.startswith(f"Nothing to undo: `plan undo {name}` undid it, "), last


@pytest.mark.parametrize("left", [STRAYS - 1, only_nightly(STRAYS // 2), 1])
async def test_a_prune_killed_at_any_value_loses_nothing_that_a_plan_needs_and_the_next_one_removes_the_rest(
    environ: Environ, settings: Settings, queue: str, workspace: Path, tmp_path: Path, left: int
) -> None:
    client, name = await connect(settings), f"kept-{uuid.uuid4().hex[:8]}"
    (workspace / "big.txt").write_text(queue + "b" * 100_000)
    steps = [
        {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}},
        {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$r"}, "requiresApproval": True},
    ]
    values = settings.state_dir / "values"
    async with worker_process(environ):
        await serves(client, queue)
        begun = await plan(environ, "start", written(tmp_path / "plan.json", {"id": name, "steps": steps}))
        assert begun.code == 0, begun
        await until(lambda: awaited(client, name), "the plan asks")
        needed = stored(values)
        store = ValueStore(storage(settings))
        for number in range(STRAYS):
            await store.put(f'"nobody wants {number}"')
        assert len(stored(values) - needed) == STRAYS
        for path in stored(values):
            os.utime(path, (time.time() - 2 * 86_400,) * 2)
        async with running(environ, "prune", "--older-than", "1d") as command:
            await comes(lambda: len(stored(values) - needed) <= left, lambda: command.returncode is not None)
            await killed_now(command)
        held = set(values.glob("??/.*.gone"))
        assert len(held) <= 1, "one value at a time is held"
        again = await plan(environ, "prune", "--older-than", "1d")
        assert again.code == 0, again
        assert {path for path in values.rglob("*") if path.is_file()} == needed
        assert (await plan(environ, "approve", name, "w")).code == 0
        assert (await runs.wait(client, name)).is_completed
        assert (workspace / "copy.txt").read_text() == queue + "b" * 100_000


def stored(values: Path) -> set[Path]:
    return set(values.glob("??/[!.]*"))


async def awaited(client: Client, name: str) -> bool:
    with suppress(PlanError):
        return bool((await runs.show(client, name)).pending)
    return False

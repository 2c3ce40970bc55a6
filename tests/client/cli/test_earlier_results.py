"""Results of earlier runs by the command line: through child plans, and between worker processes of one queue."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import CEILING, line_with, plan, running, written

Environ = dict[str, str]
COPY = [
    {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}},
    {"id": "copy", "tool": "write_file", "args": {"path": "b.txt", "content": "{{read}}"}},
]


async def run(environ: Environ, file: str, *options: str) -> str:
    """The id of a plan that has run to its end."""
    ended = await plan(environ, "run", file, "--yes", "--json", *options)
    assert ended.code == 0, ended.err
    return str(ended.json["summary"]["planId"])


async def notes_of(environ: Environ, plan_id: str) -> dict[str, dict[str, Any]]:
    """By step, what is known of its earlier result."""
    view = (await plan(environ, "show", plan_id, "--json")).json
    return {each["id"]: each["result"].get("cache") or {} for each in view["steps"]}


async def child_of(environ: Environ, plan_id: str) -> str:
    """The only child plan of a plan."""
    view = (await plan(environ, "show", plan_id, "--json")).json
    (found,) = [each["child"]["planId"] for each in view["steps"] if each.get("child")]
    return str(found)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_since_means_the_child_of_the_same_step_in_the_run_that_it_names(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    written(workspace / "child.json", {"title": "inner", "cache": True, "steps": COPY})
    inner = {"id": "inner", "tool": "plan", "args": {"file": "child.json"}}
    file = written(tmp_path / "plan.json", {"title": "outer", "steps": [inner]})
    (workspace / "a.txt").write_text("one\n")
    first = await run(environ, file)
    (workspace / "a.txt").write_text("two\n")
    second = await run(environ, file)
    (workspace / "b.txt").unlink()
    below = await child_of(environ, second)
    notes = await notes_of(environ, await child_of(environ, await run(environ, file, "--since", second)))
    assert [notes[name].get("takenFrom") for name in ("read", "copy")] == [f"{below}/read", f"{below}/copy"]
    assert (workspace / "b.txt").read_text() == "two\n"
    notes = await notes_of(environ, await child_of(environ, await run(environ, file, "--since", first)))
    assert [notes[name]["why"] for name in ("read", "copy")] == ["since", "since"]


@pytest.mark.slow
async def test_a_worker_takes_what_another_kept_and_notices_what_was_altered(
    environ: Environ, tmp_path: Path, workspace: Path
) -> None:
    environ = environ | {"PLANS_AUTO_WORKER": "off"}  # no worker but these two
    (workspace / "a.txt").write_text("one\n")
    file = written(tmp_path / "plan.json", {"title": "shared", "cache": True, "steps": COPY})
    async with running(environ, "worker") as first:
        await line_with(first, "Listening")
        kept = await run(environ, file)
        async with running(environ, "worker") as second:
            await line_with(second, "Listening")
            await stopped(first)
            (workspace / "b.txt").unlink()
            notes = await notes_of(environ, await run(environ, file))
            assert [notes[name]["takenFrom"] for name in ("read", "copy")] == [f"{kept}/read", f"{kept}/copy"]
            assert (workspace / "b.txt").read_text() == "one\n"
            altered = poison(Path(environ["PLANS_STATE_DIR"], "cache", "contents"))
            assert altered
            (workspace / "b.txt").unlink()
            notes = await notes_of(environ, await run(environ, file))
            assert notes["copy"]["why"] == "damaged", notes
            assert (workspace / "b.txt").read_text() == "one\n"
            await stopped(second)


async def stopped(worker: asyncio.subprocess.Process) -> None:
    """A worker that has ended in order."""
    worker.send_signal(signal.SIGTERM)
    await line_with(worker, "Stopped.")
    assert await asyncio.wait_for(worker.wait(), CEILING) == 0


def poison(contents: Path) -> list[Path]:
    """Alter every content that is kept."""
    files = [path for path in contents.rglob("*") if path.is_file()]
    for path in files:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes() + b"x")
    return files

"""`plan call`: one tool, called from a shell as a plan of one step."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import plan, plan_process
from tests.kit.waiting import until

Environ = dict[str, str]
LONG = "a line of a long text\n" * 1_800
"""40 KB: stored outside of history."""


@pytest_asyncio.fixture
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    """A worker that keeps large values where the command looks for them."""
    client = await connect(settings)
    async with build(client, settings, load_tools(()), indexed=True) as running:
        await until(lambda: listeners(client, settings.task_queue), "the server sees the worker poll")
        yield running


@pytest.mark.parametrize("text", ["short, without a newline", "two\nlines\n", LONG], ids=["short", "lines", "long"])
async def test_a_text_is_printed_as_it_is_and_nothing_else_is(
    environ: Environ, worker: Worker, workspace: Path, text: str
) -> None:
    (workspace / "in.txt").write_text(text)
    ended = await plan(environ, "call", "read_file", "--args", '{"path": "in.txt"}')
    assert (ended.code, ended.out) == (0, text)
    assert "plan call-read-file-" in ended.err
    assert "✓ call" in ended.err


async def test_other_values_are_printed_as_json_and_arguments_come_from_standard_input(
    environ: Environ, worker: Worker, workspace: Path
) -> None:
    arguments = {"path": "out.txt", "content": 'it\'s "quoted"\n'}
    ended = await plan(environ, "call", "write_file", "--args", "-", stdin=json.dumps(arguments))
    assert (ended.code, ended.json) == (0, {"path": "out.txt", "bytes": 14, "created": True})
    assert (workspace / "out.txt").read_text() == arguments["content"]


async def test_json_has_the_value_beside_the_summary(environ: Environ, worker: Worker, workspace: Path) -> None:
    (workspace / "in.txt").write_text(LONG)
    ended = await plan(environ, "call", "read_file", "--args", '{"path": "in.txt"}', "--id", "once", "--json")
    assert (ended.code, ended.json["planId"], ended.json["summary"]["status"]) == (0, "once", "completed")
    assert ended.json["value"] == LONG
    again = await plan(environ, "call", "read_file", "--args", '{"path": "in.txt"}', "--id", "once")
    assert (again.code, again.out) == (2, "")
    assert "has been used before" in again.err


async def test_a_value_that_is_kept_elsewhere_is_told_and_is_not_printed_in_part(
    environ: Environ, worker: Worker, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "in.txt").write_text(LONG)
    elsewhere = environ | {"PLANS_STATE_DIR": str(tmp_path / "other")}
    shutil.copytree(environ["PLANS_STATE_DIR"], elsewhere["PLANS_STATE_DIR"])
    ended = await plan(elsewhere, "call", "read_file", "--args", '{"path": "in.txt"}')
    assert (ended.code, ended.out) == (1, "")
    assert "VALUE_MISSING" in ended.err


async def test_a_call_that_fails_prints_nothing_on_standard_output(
    environ: Environ, worker: Worker, workspace: Path
) -> None:
    ended = await plan(environ, "call", "read_file", "--args", '{"path": "nope"}')
    assert (ended.code, ended.out) == (1, "")
    assert "NOT_FOUND" in ended.err
    assert "plan logs call-read-file-" in ended.err
    shown = await plan(environ, "call", "read_file", "--args", '{"path": "nope"}', "--json")
    assert (shown.code, shown.json["value"], shown.json["summary"]["counts"]) == (1, None, {"total": 1, "failed": 1})


async def test_a_call_waits_for_its_approval_and_is_undone_like_any_step(
    environ: Environ, worker: Worker, temporal_client: Client, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("kept")
    calling = asyncio.create_task(
        plan(environ, "call", "delete_file", "--args", '{"path": "a.txt"}', "--id", "removal")
    )
    await until(lambda: _awaits(temporal_client, "removal"), "the call awaits its approval")
    assert (workspace / "a.txt").exists()
    await runs.approve(temporal_client, "removal", Choice(step_id="call", by="ann"))
    ended = await calling
    assert (ended.code, (workspace / "a.txt").exists()) == (0, False)
    assert "plan approve removal call" in ended.err
    undone = await plan(environ, "undo", "removal", "--yes")
    assert (undone.code, (workspace / "a.txt").read_text()) == (0, "kept")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["read_fil"], "did you mean 'read_file'?"),
        (["read_file"], "read_file needs 'path'; add it"),
        (["read_file", "--args", "[1]"], '--args is not a JSON object; write {"name": value}'),
        (["read_file", "--args", "{path: a}"], "--args is not valid JSON"),
        (["read_file", "--args", '{"path": "a", "timeout": "no"}'], "timeout"),
        (["read_file", "--args", '{"path": "a"}', "--id", "plan-x"], "cannot begin with 'plan-'"),
        ([""], "Unknown tool"),
    ],
)
async def test_a_mistake_is_told_as_in_a_plan_file_without_lines(
    environ: Environ, worker: Worker, arguments: list[str], said: str
) -> None:
    ended = await plan(environ, "call", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "  line 1," not in ended.err  # it has no file


async def test_a_dry_run_says_what_the_call_would_do(environ: Environ, worker: Worker, workspace: Path) -> None:
    ended = await plan_process(
        environ, "call", "write_file", "--args", '{"path": "b.txt", "content": "x"}', "--dry-run", cwd=workspace
    )
    assert ended.code == 0, ended.err
    assert "nothing was started" in ended.out
    assert not (workspace / "b.txt").exists()


async def _awaits(client: Client, plan_id: str) -> bool:
    try:
        return bool((await runs.show(client, plan_id)).pending)
    except Exception:  # not started yet
        return False

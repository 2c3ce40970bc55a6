"""`plan undo` of a plan whose steps say how: what they say runs once, in reverse, and files are restored after it."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client import runs
from plansurvive.client.undone import undo_plans
from plansurvive.features.files.verbs import undo_whole
from plansurvive.plans.errors import Refused
from tests.client.cli.command import plan, written
from tests.kit.waiting import until

Environ = dict[str, str]


def note(name: str, *needs: str, undo: bool = True) -> dict[str, Any]:
    """A step that adds a file; its undo adds another one, outside of what is restored by itself."""
    made = {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": name}, "dependsOn": [*needs]}
    back = {"undo": {"tool": "run_command", "args": {"command": f"echo undo {name} {{{{value.bytes}}}} >> /dev/null"}}}
    return made | (back if undo else {})


@pytest.fixture
async def ended(environ: Environ, worker: Worker, tmp_path: Path) -> str:
    """A plan with two undoable steps and one that is not, completed."""
    name = f"undoable-{uuid.uuid4().hex[:8]}"
    steps = [note("a"), note("b", "a"), note("c", "b", undo=False)]
    done = await plan(environ, "run", written(tmp_path / "plan.json", {"id": name, "steps": steps}))
    assert done.code == 0, done.err
    return name


def left(workspace: Path) -> list[str]:
    """The files in the workspace."""
    return sorted(path.name for path in workspace.glob("*.txt"))


async def test_a_preview_lists_the_undos_and_the_files_and_does_nothing(
    ended: str, environ: Environ, workspace: Path
) -> None:
    shown = await plan(environ, "undo", ended, "--dry-run")
    rows = shown.out.splitlines()
    assert [row.split("(undo of step ")[-1] for row in rows[:2]] == ["b)", "a)"]
    assert "echo undo b '1' >> /dev/null" in rows[0]
    assert {"  would delete a.txt", "  would delete b.txt", "  would delete c.txt"} <= set(rows)
    assert (shown.code, left(workspace)) == (0, ["a.txt", "b.txt", "c.txt"])


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_undo_asks_for_approval_and_runs_once(
    ended: str, environ: Environ, temporal_client: Client, workspace: Path
) -> None:
    begun = await runs.compensate(temporal_client, ended)
    assert begun is not None
    assert begun.plan_id == f"{ended}-undo"
    for name in ("b.undo", "a.undo"):

        async def asks(name: str = name) -> bool:
            return [item.step_id for item in (await runs.show(temporal_client, begun.plan_id)).pending] == [name]

        await until(asks, f"{name} asks")
        again = await runs.compensate(temporal_client, ended)
        assert again is not None
        assert again.plan_id == begun.plan_id
        await runs.approve(temporal_client, begun.plan_id, runs.Choice(step_id=name, by="ann"))
    assert (await runs.wait(temporal_client, begun.plan_id)).is_completed
    assert await runs.compensations(temporal_client, ended) == []
    done = await plan(environ, "undo", ended)
    assert (done.code, left(workspace)) == (0, [])
    assert (await plan(environ, "undo", ended)).err.startswith(f"Nothing to undo: `plan undo {ended}` undid it, ")
    with pytest.raises(Refused, match="only undoes plan"):
        await runs.resume(temporal_client, begun.plan_id)


async def test_undos_at_the_same_time_wait_for_each_other_and_all_say_what_was_undone(
    ended: str, temporal_client: Client, workspace: Path
) -> None:
    async def to_its_end(started: runs.Started) -> runs.Summary:
        return await runs.wait(temporal_client, started.plan_id)

    undos = [undo_whole(temporal_client, ended, "b", to_its_end, yes=True) for _ in range(3)]
    one_step = await asyncio.gather(*undos)
    assert [(each.is_whole, each.report.refused) for each in one_step] == [(True, [])] * 3
    assert left(workspace) == ["a.txt", "c.txt"]
    undos = [undo_whole(temporal_client, ended, step, to_its_end, yes=True) for step in (None, "a", None)]
    all_steps = await asyncio.gather(*undos)
    assert [(each.is_whole, each.report.refused) for each in all_steps] == [(True, [])] * 3
    assert left(workspace) == []
    assert await runs.compensations(temporal_client, ended) == []
    names = [name async for name, _ in undo_plans(temporal_client, ended)]
    assert len(names) in (2, 3), "no step was undone twice"


async def test_one_step_is_undone_and_runs_again_when_the_plan_is_resumed(
    ended: str, environ: Environ, temporal_client: Client, workspace: Path
) -> None:
    done = await plan(environ, "undo", ended, "b", "--yes", "--json")
    assert done.code == 0, done.err
    assert [(each["stepId"], each["undoId"]) for each in done.json["undo"]] == [("b", "b.undo")]
    assert (done.json["undoPlan"], left(workspace)) == (f"{ended}-undo", ["a.txt", "c.txt"])
    assert [call.step_id for call in await runs.compensations(temporal_client, ended)] == ["a"]
    resumed = await runs.resume(temporal_client, ended)
    summary = await runs.wait(temporal_client, resumed.plan_id)
    assert summary.is_completed
    assert left(workspace) == ["a.txt", "b.txt", "c.txt"]
    with pytest.raises(Refused, match=f"was resumed as '{ended}-r2'"):
        await runs.compensate(temporal_client, ended)
    for options in (("--dry-run",), ("--yes",)):
        refused = await plan(environ, "undo", ended, *options)
        assert (refused.code, "ALREADY_RESUMED" in refused.err) == (2, True), refused.err
    assert (await plan(environ, "undo", f"{ended}-r2", "--dry-run")).code == 0


async def test_an_undo_names_the_last_run_where_a_later_one_has_changed_the_files_since(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = f"rewritten-{uuid.uuid4().hex[:8]}"
    writes = {"id": "a", "tool": "write_file", "args": {"path": "a.txt", "content": "one"}}
    assert (await plan(environ, "run", written(tmp_path / "plan.json", {"id": name, "steps": [writes]}))).code == 0
    for earlier, content in ((name, "two"), (f"{name}-r2", "three")):
        change = ("--set", f"a.args.content={content}")
        assert (await plan(environ, "rerun", earlier, "--from", "a", *change, "--follow")).code == 0
    for options in (("--dry-run",), ()):
        refused = await plan(environ, "undo", name, *options)
        assert (refused.code, "ALREADY_RESUMED" in refused.err) == (2, True), refused.err
        assert f"plan undo {name}-r3" in " ".join(refused.err.split())
    assert (await plan(environ, "undo", f"{name}-r3")).code == 0
    assert left(workspace) == []
    assert "ALREADY_RESUMED" in (await plan(environ, "undo", name)).err
    again = (await plan(environ, "undo", f"{name}-r3")).err
    assert again.startswith(f"Nothing to undo: `plan undo {name}-r3` undid it, "), again


async def test_a_second_cancellation_ends_a_plan_that_rolls_back(
    environ: Environ, worker: Worker, tmp_path: Path, temporal_client: Client
) -> None:
    name = f"cancelled-{uuid.uuid4().hex[:8]}"
    steps = [note("a"), {"id": "nap", "tool": "sleep", "args": {"seconds": 3600}, "dependsOn": ["a"]}]
    file = written(tmp_path / "plan.json", {"id": name, "rollback": True, "steps": steps})
    assert (await plan(environ, "start", file)).code == 0

    async def sleeps() -> bool:
        return any(step.id == "nap" and step.status == "running" for step in await _steps(temporal_client, name))

    async def asks() -> bool:
        return bool((await runs.show(temporal_client, name)).pending)

    await until(sleeps, "the plan sleeps")
    assert (await plan(environ, "cancel", name)).code == 0
    await until(asks, "the undo asks")
    assert (await plan(environ, "cancel", name)).code == 0
    summary = await runs.wait(temporal_client, name)
    assert summary.status == "cancelled"
    assert [(each.step_id, each.status) for each in summary.undone] == [("a", "failed")]


async def _steps(client: Client, name: str) -> Any:
    return (await runs.show(client, name)).steps


async def test_a_plan_that_was_undone_says_so_in_every_view(ended: str, environ: Environ, workspace: Path) -> None:
    async def listed() -> str:
        return next(row for row in (await plan(environ, "list")).out.splitlines() if row.startswith(f"{ended} "))

    before = await listed()
    (workspace / "c.txt").write_text("changed since")
    assert (await plan(environ, "undo", ended, "--yes")).code == 1  # c.txt: nothing was undone
    assert "Undone" not in (await plan(environ, "show", ended)).out
    assert (await plan(environ, "undo", ended, "--yes", "--partly")).code == 1
    words = f"2 of 3 files, the `undo` of steps in plan {ended}-undo"
    assert f", {words}\n" in (await plan(environ, "show", ended)).out
    assert [row.split()[0] for row in (await plan(environ, "summary", ended)).out.splitlines() if words in row] == [
        "undone"
    ]
    for command in ("show", "summary"):
        undo = (await plan(environ, command, ended, "--json")).json["undo"]
        assert (undo["files"], undo["left"], undo["plan"], undo["step"]) == (2, 1, f"{ended}-undo", "")
    assert "partly" not in before
    assert "partly" in await listed()
    (workspace / "c.txt").write_text("c")
    assert (await plan(environ, "undo", ended)).code == 0
    undo = (await plan(environ, "show", ended, "--json")).json["undo"]
    assert (undo["files"], undo["left"]) == (3, 0)


async def test_the_mark_of_an_undo_names_the_step_that_alone_was_undone(ended: str, environ: Environ) -> None:
    assert (await plan(environ, "undo", ended, "c")).code == 0
    assert ", only step c, 1 of 1 file\n" in (await plan(environ, "show", ended)).out


async def test_an_undo_shows_only_what_it_does_itself(ended: str, environ: Environ) -> None:
    rows = (await plan(environ, "undo", ended, "--yes")).out.splitlines()
    assert rows[0] == f"plan {ended}-undo"
    assert f"undoes plan '{ended}'" in rows[1]
    assert {row.split()[2] for row in rows if "▸" in row} == {"a.undo", "b.undo"}

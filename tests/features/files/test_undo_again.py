"""What comes after `plan undo`: resume, rerun, another undo, the undo of an earlier run, whatever the plan holds."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.runtime.background_worker import recorded, stop_workers
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import Ended, plan, written
from tests.kit.waiting import until

Environ = dict[str, str]
FREE: dict[str, Any] = {"requiresApproval": False}


def write(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A step that creates a file."""
    args = {"path": f"{name}.txt", "content": name}
    return {"id": name, "tool": "write_file", "args": args, "dependsOn": [*needs], **more}


FAILS = {"id": "fails", "tool": "read_file", "args": {"path": "missing.md"}, "dependsOn": ["work"]}
BACK = {"undo": {"tool": "run_command", "args": {"command": "echo back >> undos.md"}, **FREE}}
CHILD = {"steps": [write("x"), write("y", "x")]}
HELD: dict[str, tuple[list[dict[str, Any]], set[str]]] = {
    "file step": ([write("work")], {"work.txt"}),
    "steps": ([write("first"), write("work", "first")], {"first.txt", "work.txt"}),
    "command": (
        [{"id": "work", "tool": "run_command", "args": {"command": "echo a > a.txt; echo b > b.txt"}, **FREE}],
        {"a.txt", "b.txt"},
    ),
    "loop": (
        [
            {
                "id": "work", "forEach": {"items": ["a", "b"], "as": "n"}, "tool": "write_file",
                "args": {"path": "{{n}}.txt", "content": "{{n}}"},
            }
        ],
        {"a.txt", "b.txt"},
    ),
    "block": ([{"id": "work", "steps": [write("in"), write("out", "in")]}], {"in.txt", "out.txt"}),
    "child plan": ([{"id": "work", "tool": "plan", "args": CHILD}], {"x.txt", "y.txt"}),
    "round": (
        [
            {
                "id": "work", "repeat": {"until": "`true`"}, "tool": "write_file",
                "args": {"path": "a.txt", "content": "a"},
            }
        ],
        {"a.txt"},
    ),
    "express": ([{"id": "work", "express": True, "steps": [write("e"), write("f", "e")]}], {"e.txt", "f.txt"}),
    "batches": (
        [
            {
                "id": "work", "forEach": {"items": ["a", "b", "c"], "as": "n", "mode": "plans", "batch": 2},
                "tool": "write_file", "args": {"path": "{{n}}.txt", "content": "{{n}}"},
            }
        ],
        {"a.txt", "b.txt", "c.txt"},
    ),
    "loop of blocks": (
        [{"id": "work", "forEach": {"items": ["a", "b"], "as": "n"}, "steps": [
            {"id": "w", "tool": "write_file", "args": {"path": "{{n}}.txt", "content": "{{n}}"}},
            {"id": "e", "tool": "write_file", "args": {"path": "{{n}}2.txt", "content": "{{w.bytes}}"}},
        ]}],
        {"a.txt", "b.txt", "a2.txt", "b2.txt"},
    ),
    "own undo": ([write("work", **BACK)], {"work.txt"}),
}  # fmt: skip
"""What a plan holds: its steps, the last of which is `work`, and the files that they create."""


async def fresh(environ: Environ, folder: Path, *steps: dict[str, Any], **more: Any) -> str:
    """A plan that ran, whatever became of it; its id."""
    name = f"again-{uuid.uuid4().hex[:8]}"
    await plan(environ, "run", written(folder / "plan.json", {"id": name, "steps": [*steps], **more}))
    return name


def left(workspace: Path) -> set[str]:
    """The files that the plans make."""
    return {path.name for path in workspace.glob("*.txt")}


def well(done: Ended) -> Ended:
    """A command that has done what it was to do."""
    assert done.code == 0, done
    return done


@pytest.mark.parametrize("holds", HELD)
async def test_what_was_undone_runs_again_when_the_plan_is_resumed(
    holds: str, environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    steps, files = HELD[holds]
    name = await fresh(environ, tmp_path, *steps, FAILS, **{"finally": [write("report")]})
    assert left(workspace) == {*files, "report.txt"}
    well(await plan(environ, "undo", name, "--yes"))
    assert left(workspace) == set()
    foreseen = well(await plan(environ, "resume", name, "--dry-run", "--json")).json
    assert foreseen["keeps"] == []
    assert set(foreseen["runs"]) >= {"fails"}
    (workspace / "missing.md").write_text("there")
    well(await plan(environ, "resume", name, "--follow"))
    assert left(workspace) == {*files, "report.txt"}
    # Once more: what was undone and done again is undone again, and nothing of the first run is in the way.
    well(await plan(environ, "undo", f"{name}-r2", "--yes"))
    assert left(workspace) == set()
    well(await plan(environ, "resume", f"{name}-r2", "--follow"))
    assert left(workspace) == {*files, "report.txt"}


@pytest.mark.parametrize("holds", HELD)
async def test_what_was_undone_runs_again_when_the_plan_is_rerun(
    holds: str, environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    steps, files = HELD[holds]
    name = await fresh(environ, tmp_path, *steps, write("last", "work"), **{"finally": [write("report")]})
    assert left(workspace) == {*files, "last.txt", "report.txt"}
    well(await plan(environ, "undo", name, "--yes"))
    assert left(workspace) == set()
    refused = await plan(environ, "rerun", name, "--only", "last", "--dry-run")
    assert (refused.code, "NOT_DONE" in refused.err) == (2, True), refused
    well(await plan(environ, "rerun", name, "--from", "last", "--follow"))
    assert left(workspace) == {*files, "last.txt", "report.txt"}
    # The first run was undone, the second stands: the second keeps what it has done.
    refused = await plan(environ, "resume", f"{name}-r2", "--dry-run")
    assert (refused.code, "NOTHING_TO_DO" in refused.err) == (2, True), refused


async def test_one_item_is_undone_and_only_that_runs_again(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, *HELD["loop"][0])
    well(await plan(environ, "undo", name, "work[1]"))
    assert left(workspace) == {"a.txt"}
    foreseen = well(await plan(environ, "resume", name, "--dry-run", "--json")).json
    assert (foreseen["runs"], foreseen["keeps"]) == (["work[1]"], ["work[0]"])
    well(await plan(environ, "resume", name, "--follow"))
    assert left(workspace) == {"a.txt", "b.txt"}


async def test_of_a_child_plan_only_the_steps_that_were_undone_run_again(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path, temporal_client: Client
) -> None:
    name = await fresh(environ, tmp_path, *HELD["child plan"][0])
    well(await plan(environ, "undo", name, "work/y"))
    assert left(workspace) == {"x.txt"}
    well(await plan(environ, "resume", name, "--follow"))
    assert left(workspace) == {"x.txt", "y.txt"}
    report = await runs.file_changes(temporal_client, f"{name}-r2", diffs=False)
    made = [(call.step_id, call.undone is not None) for call in report.calls]
    assert made == [("work/x", False), ("work/y", True), ("work/y", False)]


async def test_a_file_that_was_restored_is_edited_again_without_asking(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "text.txt").write_text("old")
    read = {"id": "read", "tool": "read_file", "args": {"path": "text.txt"}}
    name = await fresh(environ, tmp_path, read, {**write("w", "read"), "args": {"path": "text.txt", "content": "new"}})
    assert (workspace / "text.txt").read_text() == "new"
    well(await plan(environ, "undo", name))
    assert (workspace / "text.txt").read_text() == "old"
    well(await plan(environ, "resume", name, "--follow"))
    assert (workspace / "text.txt").read_text() == "new"


async def test_a_file_that_others_change_after_the_undo_is_not_overwritten(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "text.txt").write_text("old")
    read = {"id": "read", "tool": "read_file", "args": {"path": "text.txt"}}
    name = await fresh(environ, tmp_path, read, {**write("w", "read"), "args": {"path": "text.txt", "content": "new"}})
    well(await plan(environ, "undo", name))
    (workspace / "text.txt").write_text("theirs")
    assert (await plan(environ, "resume", name, "--follow")).code == 1
    assert (workspace / "text.txt").read_text() == "theirs"


async def test_what_was_undone_in_part_runs_again(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, *HELD["command"][0])
    (workspace / "b.txt").write_text("theirs")
    assert (await plan(environ, "undo", name, "--partly")).code == 1
    assert left(workspace) == {"b.txt"}
    rows = well(await plan(environ, "files", name, "--no-diff")).out.splitlines()
    assert rows == ["work (run_command)", "  + a.txt  (undone since)", "  + b.txt"]
    foreseen = well(await plan(environ, "resume", name, "--dry-run", "--json")).json
    assert foreseen["runs"] == ["work"]
    well(await plan(environ, "resume", name, "--follow"))
    assert left(workspace) == {"a.txt", "b.txt"}
    listed = well(await plan(environ, "files", name, "--no-diff", "--json")).json["calls"]
    assert [[bool(change.get("undone")) for change in call["changes"]] for call in listed] == [[True, False]]


async def test_an_earlier_run_is_undone_under_the_id_of_the_last_one_whatever_it_holds(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, write("work"), FAILS)
    (workspace / "missing.md").write_text("there")
    well(await plan(environ, "resume", name, "--follow"))
    for options in (["--dry-run"], [], ["work"], ["--partly"]):
        refused = await plan(environ, "undo", name, *options)
        assert (refused.code, "ALREADY_RESUMED" in refused.err) == (2, True), refused
        assert f"plan undo {name}-r2" in " ".join(refused.err.split())
    assert left(workspace) == {"work.txt"}
    well(await plan(environ, "undo", f"{name}-r2"))
    assert left(workspace) == set()


@pytest.mark.parametrize("holds", ["file step", "own undo"])
async def test_an_undo_that_finds_nothing_says_when_and_by_which_command_it_was_undone(
    holds: str, environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, write("other"), *HELD[holds][0])
    well(await plan(environ, "undo", name, "work", "--yes"))
    for options in ([], ["--dry-run"]):
        told = well(await plan(environ, "undo", name, "work", *options)).err
        assert told.startswith(f"Nothing to undo: `plan undo {name} work` undid it, "), told
        assert "1 of 1 file" in told, told
    well(await plan(environ, "undo", name))
    assert well(await plan(environ, "undo", name)).err.startswith(f"Nothing to undo: `plan undo {name}` undid it, ")


async def test_a_plan_that_was_not_undone_has_nothing_more_to_say(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, {"id": "look", "tool": "list_files", "args": {}})
    assert well(await plan(environ, "undo", name)).err == "Nothing to undo.\n"


def fallible(name: str, *needs: str) -> dict[str, Any]:
    """A step whose undo fails until there is a file `open.md`, and notes that it has undone it then."""
    back = f"test -e open.md && echo {name} >> undos.md"
    undo = {"tool": "run_command", "args": {"command": back}, **FREE}
    make = {"command": f"echo {name} >> made.md"}
    return {"id": name, "tool": "run_command", "args": make, "dependsOn": [*needs], "undo": undo, **FREE}


def noted(workspace: Path, name: str) -> list[str]:
    """The rows of a file."""
    return (workspace / name).read_text().split() if (workspace / name).exists() else []


async def test_an_undo_that_failed_is_proposed_first_and_tried_again(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await fresh(environ, tmp_path, fallible("work"), FAILS, rollback=True)
    rows = [row.split()[1:] for row in (await plan(environ, "summary", name)).out.splitlines() if "  next " in row]
    assert rows[0] == ["plan", "undo", name, "tries", "again", "to", "undo", "work"], rows
    failed = await plan(environ, "undo", name)
    assert (failed.code, f"plan undo {name}" in failed.err) == (1, True), failed
    rows = [
        row.split()[1:] for row in (await plan(environ, "summary", f"{name}-undo")).out.splitlines() if "next" in row
    ]
    assert rows == [["plan", "undo", name, "tries", "again", "to", "undo", "work"]], rows
    (workspace / "open.md").touch()
    well(await plan(environ, "undo", name))
    assert noted(workspace, "undos.md") == ["work"]


@pytest.mark.parametrize("how", [["resume"], ["rerun", "--from", "work"]])
async def test_an_undo_that_failed_is_still_to_be_done_in_a_later_run(
    how: Sequence[str], environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    first = {**write("first"), "undo": {"tool": "run_command", "args": {"command": "rm first.txt"}, **FREE}}
    name = await fresh(environ, tmp_path, first, fallible("work", "first"), FAILS, rollback=True)
    assert noted(workspace, "made.md") == ["work"]
    (workspace / "open.md").touch()
    command, *options = how
    assert (await plan(environ, command, name, *options, "--follow")).code == 1  # it rolls back again
    again = ["work"] if command == "rerun" else []
    assert noted(workspace, "made.md") == ["work", *again]
    # What the later run has taken over its rollback undoes; what it did a second time, first by its rollback.
    assert noted(workspace, "undos.md") == ["work"]
    well(await plan(environ, "undo", f"{name}-r2", "--partly"))
    assert noted(workspace, "undos.md") == ["work", *again]
    well(await plan(environ, "undo", f"{name}-r2", "--partly"))
    assert noted(workspace, "undos.md") == ["work", *again]


async def test_an_undo_runs_with_the_settings_of_its_command(
    environ: Environ, temporal_client: Client, tmp_path: Path, workspace: Path, settings: Settings
) -> None:
    try:
        name = await fresh(environ, tmp_path, write("work"))
        [first] = recorded(settings)
        other = environ | {"PLANS_HTTP_ALLOW": "127.0.0.1:1"}
        well(await plan(other, "undo", name, "--dry-run"))
        assert recorded(settings) == [first], "a look replaces no worker"
        well(await plan(other, "undo", name))
        assert any(each.fingerprint != first.fingerprint for each in recorded(settings))
        assert left(workspace) == set()
    finally:
        await stop_workers(settings)


@pytest.mark.parametrize("ended", ["completed", "partial"])
async def test_an_agent_whose_files_were_restored_starts_over(
    ended: str, environ: Environ, temporal_client: Client, settings: Settings, tmp_path: Path, workspace: Path
) -> None:
    calls = {"json": {"tool_calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "1"}}]}}
    answer = {"json": {"answer": "Written.", "confidence": "high"}}
    second: dict[str, Any] = answer if ended == "completed" else {"status": 401, "error": "no"}
    story = [{"reply": each} for each in (calls, second, calls, answer)]
    with ScriptedLlm(Script.of(story)) as llm:
        bound = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, bound, load_tools(()), indexed=True):
            await until(lambda: listeners(temporal_client, bound.task_queue), "the server sees the worker poll")
            work = {"id": "work", "tool": "agent", "args": {"objective": "Write a file"}}
            name = await fresh(environ, tmp_path, work)
            assert left(workspace) == {"a.txt"}
            well(await plan(environ, "undo", name))
            assert left(workspace) == set()
            well(await plan(environ, "resume", name, "--follow"))
            assert left(workspace) == {"a.txt"}


async def test_an_agent_is_told_that_its_files_were_restored(
    environ: Environ, temporal_client: Client, settings: Settings, workspace: Path
) -> None:
    calls = {"json": {"tool_calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "1"}}]}}
    told = "Your changes to these files have been undone"
    story: list[dict[str, Any]] = [
        {"reply": calls},
        {"reply": {"status": 401, "error": "no"}},
        {"when": told, "reply": calls},
        {"reply": {"json": {"answer": "Written.", "confidence": "high"}}},
    ]
    with ScriptedLlm(Script.of(story)) as llm:
        bound = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, bound, load_tools(()), indexed=True):
            await until(lambda: listeners(temporal_client, bound.task_queue), "the server sees the worker poll")
            name = f"again-{uuid.uuid4().hex[:8]}"
            await plan(environ, "agent", "Write a file", "--id", name, "--workspace", str(workspace))
            assert left(workspace) == {"a.txt"}
            well(await plan(environ, "undo", f"agent-{name}"))
            assert left(workspace) == set()
            well(await plan(environ, "resume", f"agent-{name}", "--follow"))
            assert left(workspace) == {"a.txt"}


@pytest.mark.parametrize("more", [{}, BACK])
async def test_a_child_plan_that_was_undone_by_itself_is_done_again_by_its_plan(
    more: dict[str, Any], environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    steps = [write("x"), {**write("y", "x"), **more}]
    name = await fresh(environ, tmp_path, {"id": "work", "tool": "plan", "args": {"steps": steps}})
    well(await plan(environ, "undo", f"{name}-work", "y", "--yes"))
    assert left(workspace) == {"x.txt"}
    well(await plan(environ, "resume", name, "--follow"))
    assert left(workspace) == {"x.txt", "y.txt"}

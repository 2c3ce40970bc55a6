"""Steps in worktrees, in plans: items side by side on branches of their own, merged once a person approves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.features.worktrees.repositories import git, made
from tests.kit.driving import Plans, step
from tests.workflows.conftest import MakeWorker


def writes(step_id: str, path: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": "write_file", "args": {"path": path, "content": content}, **more}


LOOP = {
    "id": "fix",
    "forEach": {"items": ["x", "y"]},
    "worktree": True,
    "steps": [
        writes("write", "new.txt", "{{item}}", description="Write {{item}}"),
        {"id": "read", "tool": "read_file", "args": {"path": "new.txt"}, "dependsOn": ["write"]},
        writes("again", "new.txt", "again {{read}}", dependsOn=["read"]),
    ],
}


@pytest.mark.crosses_runs
async def test_items_work_on_branches_of_their_own(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([LOOP, writes("main", "other.txt", "in the workspace")])
        view = await plan.ended()
    assert view["status"] == "completed", view
    name = view["id"]
    branches = git(workspace, "branch", "--list", f"plans/{name}/*", "--format=%(refname:short)").split()
    assert [git(workspace, "show", f"{each}:new.txt") for each in branches] == ["again x", "again y"]
    assert len(git(workspace, "log", "--format=%s", f"main..{branches[0]}").split("\n")) == 2
    assert git(workspace, "status", "--porcelain") == "?? other.txt"
    assert view["step_files"]["0"] == ["worktree:fix[0]:new.txt", "worktree:fix[1]:new.txt"]


async def test_a_merge_asks_and_then_brings_the_work_into_the_workspace(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    merge = {"id": "merge", "tool": "merge_worktrees", "args": {"steps": ["one"]}, "dependsOn": ["one"]}
    steps = [writes("one", "new.txt", "x", worktree=True, description="Write it"), merge]
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start(steps)
        await plan.until_asked("merge")
        assert not (workspace / "new.txt").exists()
        await plan.approve("merge")
        view = await plan.ended()
    assert view["status"] == "completed", view
    assert (workspace / "new.txt").read_text() == "x"
    commits = [git(workspace, "rev-parse", "main")]
    assert step(view, "merge")["result"]["value"] == {"commits": commits, "into": "main", "conflicts": []}
    assert git(workspace, "log", "--format=%s") == "Write it\nfirst"


BOTH = [
    writes(name, "a.txt", f"{name}\n", worktree=True, requiresApproval=False, description=f"Do {name}")
    for name in ("red", "blue")
]
MERGE: dict[str, Any] = {
    "id": "merge", "tool": "merge_worktrees", "args": {"steps": ["red", "blue"]}, "dependsOn": ["red", "blue"],
}  # fmt: skip


async def test_a_conflict_is_asked_about_with_three_versions_and_the_merge_continues(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([*BOTH, MERGE])
        await plan.until_asked("merge")
        await plan.approve("merge")
        view = await plan.until(lambda view: "question" in [each["kind"] for each in view["pending"]], "it asks")
        [asked] = view["pending"]
        assert "    | one\n" in asked["args"]["question"]
        assert "    | red\n" in asked["args"]["question"]
        assert asked["args"]["question"].endswith("    | blue")
        assert git(workspace, "log", "--format=%s") == "first"
        await plan.approve("merge")  # a question is answered, not approved
        await plan.until_logged("refused", "asks a question")
    async with make_worker(worktrees=tmp_path / "worktrees"):  # the worker may die meanwhile
        await plan.signal("answer", {"stepId": "merge", "value": {"a.txt:1": "mine"}})
        await plan.until_logged("refused", "does not answer")
        await plan.signal("answer", {"stepId": "merge", "value": {"a.txt:1": "both"}, "by": "ann"})
        view = await plan.ended()
    assert view["status"] == "completed", view
    assert (workspace / "a.txt").read_text() == "red\nblue\n"
    assert len(git(workspace, "log", "--format=%s").split("\n")) == 3


async def test_a_step_with_a_catch_for_the_conflict_asks_nobody(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    catch = [{"codes": ["WORKTREE_CONFLICT"], "steps": [writes("note", "conflict.txt", "x")]}]
    async with make_worker(worktrees=tmp_path / "worktrees"):
        view = await idle.run([*BOTH, {**MERGE, "requiresApproval": False, "catch": catch}])
    assert view["status"] == "completed", view
    assert (workspace / "conflict.txt").exists()
    assert git(workspace, "log", "--format=%s") == "first"


async def test_steps_resolve_what_is_brought_into_a_worktree_and_a_person_approves_it(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n", b="b\n")
    other = writes("green", "b.txt", "green\n", worktree=True, requiresApproval=False, description="Do green")
    names = ["green", "red", "blue"]
    bring = {"id": "bring", "tool": "merge_worktrees", "args": {"steps": names}, "requiresApproval": False}
    fix = "grep -q '^<<<<<<<' {{bring.conflicts[0]}} && printf 'red and blue\\n' > a.txt"
    resolve = {
        "id": "resolve", "tool": "run_command", "args": {"command": fix}, "requiresApproval": False,
        "dependsOn": ["bring"], "description": "Resolve it",
    }  # fmt: skip
    block = {"id": "both", "worktree": True, "steps": [bring, resolve], "dependsOn": names}
    merge = {**MERGE, "args": {"steps": ["both"]}, "dependsOn": ["both"]}
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([other, *BOTH, block, merge])
        view = await plan.until(
            lambda view: view["pending"] or view["status"] in ("failed", "partial"), "it asks, or has ended"
        )
        assert "awaiting" in step(view, "merge"), view
        assert (workspace / "a.txt").read_text() == "one\n"
        await plan.approve("merge")
        view = await plan.ended()
    assert view["status"] == "completed", view
    assert (workspace / "a.txt").read_text() == "red and blue\n"
    assert git(workspace, "log", "--format=%s").split("\n") == ["Resolve it", "Do red", "Do green", "first"]


async def test_a_workspace_without_a_repository_fails_the_step_with_what_to_do(
    idle: Plans, make_worker: MakeWorker, tmp_path: Path
) -> None:
    async with make_worker(worktrees=tmp_path / "worktrees"):
        view = await idle.run([writes("one", "new.txt", "x", worktree=True)])
    result = step(view, "one")["result"]
    assert result["code"] == "WORKTREE_REFUSED"
    assert "is not a git repository; make it one: git init" in result["error"]

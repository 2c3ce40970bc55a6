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
    assert step(view, "merge")["result"]["value"] == {"commits": [git(workspace, "rev-parse", "main")], "conflicts": []}
    assert git(workspace, "log", "--format=%s") == "Write it\nfirst"


async def test_a_workspace_without_a_repository_fails_the_step_with_what_to_do(
    idle: Plans, make_worker: MakeWorker, tmp_path: Path
) -> None:
    async with make_worker(worktrees=tmp_path / "worktrees"):
        view = await idle.run([writes("one", "new.txt", "x", worktree=True)])
    result = step(view, "one")["result"]
    assert result["code"] == "WORKTREE_REFUSED"
    assert "is not a git repository; make it one: git init" in result["error"]

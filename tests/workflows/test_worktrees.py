"""Steps in worktrees, in plans: items side by side on branches of their own, merged once a person approves."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client import runs
from plansurvive.features.files.verbs import undo_whole, would_undo
from tests.features.worktrees.repositories import git, made
from tests.kit.driving import Plans, step
from tests.workflows.agents import call, says, serving
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
        [item] = (await plan.view())["pending"]
        assert item["workspace"] == str(workspace)
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


def child(step_id: str, *steps: dict[str, Any], needs: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """A step that runs a plan of these steps."""
    return {"id": step_id, "tool": "plan", "args": {"steps": [*steps]}, "dependsOn": needs or [], **more}


def merged(step_id: str, of: str) -> dict[str, Any]:
    return {"id": step_id, "tool": "merge_worktrees", "args": {"steps": [of]}, "dependsOn": [of]}


async def test_undoing_a_plan_reverts_what_its_child_plans_have_merged_at_any_depth(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")

    def work(name: str) -> list[dict[str, Any]]:
        return [writes(name, f"{name}.txt", name, worktree=True, description=f"Do {name}"), merged(f"m-{name}", name)]

    deep = child("deep", *work("inner"), needs=["m-outer"])
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([child("sub", *work("outer"), deep)], {"approveAll": True})
        view = await plan.ended()
        assert view["status"] == "completed", view["log"]
        subjects = ["Do inner", "Do outer", "first"]
        assert git(workspace, "log", "--format=%s").split("\n") == subjects
        shown = await would_undo(idle.client, plan.id, None)
        assert [call.tool for call in shown.calls] == ["revert_merge"] * 2
        assert [call.step_id.rpartition("/")[2] for call in shown.calls] == ["m-inner", "m-outer"]

        async def to_its_end(started: runs.Started) -> runs.Summary:
            return await runs.wait(idle.client, started.plan_id)

        done = await undo_whole(idle.client, plan.id, None, to_its_end, yes=True)
        assert (done.is_whole, done.report.refused) == (True, [])
        assert (await would_undo(idle.client, plan.id, None)).calls == []
    assert git(workspace, "log", "--format=%s").split("\n") == [
        *(f'Revert "{each}"' for each in reversed(subjects[:2])), *subjects,
    ]  # fmt: skip
    assert sorted(path.name for path in workspace.glob("*.txt")) == ["a.txt"]


async def test_a_plan_that_rolls_back_reverts_no_merge_that_does_not_say_so(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    sub = child("sub", writes("one", "new.txt", "x", worktree=True, description="Write it"), merged("merge", "one"))
    breaks = {"id": "breaks", "tool": "read_file", "args": {"path": "none.txt"}, "dependsOn": ["sub"]}
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([sub, breaks], {"approveAll": True}, rollback=True)
        await plan.ended()
    assert git(workspace, "log", "--format=%s") == "Write it\nfirst"


async def test_a_plan_and_an_agent_work_in_the_worktree_of_their_step(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    command = "cat a.txt > seen.txt; echo two >> a.txt"
    inner = [
        writes("write", "new.txt", "x"),
        {"id": "run", "tool": "run_command", "args": {"command": command}, "requiresApproval": False},
    ]
    plan_step = child("sub", *inner, worktree=True, description="A plan")
    asks = [call("write_file", path="new.txt", content="by the agent"), call("run_command", command=command)]
    story = [says({"tool_calls": asks}), says({"answer": "done", "confidence": "high"}, times=0)]
    agent = {"id": "ai", "tool": "agent", "args": {"objective": "Work."}, "worktree": True, "description": "An agent"}
    async with serving(idle, partial(make_worker, worktrees=tmp_path / "worktrees"))(story):
        plan = await idle.start([plan_step, agent], {"approveAll": True})
        view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    assert git(workspace, "status", "--porcelain") == ""
    for tree, content in (("sub", "x"), ("ai", "by the agent")):
        branch = f"plans/{view['id']}/{tree}"
        shown = [git(workspace, "show", f"{branch}:{name}") for name in ("new.txt", "seen.txt", "a.txt")]
        assert shown == [content, "one", "one\ntwo"]
        assert git(workspace, "log", "--format=%s", f"main..{branch}") == {"sub": "A plan", "ai": "An agent"}[tree]


async def test_what_is_merged_within_a_worktree_stays_there_when_the_plan_is_undone(
    idle: Plans, make_worker: MakeWorker, workspace: Path, tmp_path: Path
) -> None:
    made(workspace, a="one\n")
    one = writes("one", "new.txt", "x", worktree=True, description="Write it")
    block = {
        "id": "both",
        "worktree": True,
        "steps": [merged("bring", "one") | {"dependsOn": []}],
        "dependsOn": ["one"],
    }
    async with make_worker(worktrees=tmp_path / "worktrees"):
        plan = await idle.start([one, block, merged("merge", "both")], {"approveAll": True})
        assert (await plan.ended())["status"] == "completed"
        calls = (await would_undo(idle.client, plan.id, None)).calls
    assert [call.step_id for call in calls] == ["merge"]

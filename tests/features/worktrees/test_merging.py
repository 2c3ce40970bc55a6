"""`merge_worktrees` on real repositories: one commit a step, all or none, and nobody's work lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.features.worktrees.merge_tool import merge_tool
from tests.features.worktrees.repositories import Site, git

LINES = "1\n2\n3\n4\n5\n6\n"


@pytest.fixture
async def two(site: Site) -> Site:
    """Two steps that have changed different lines of one file, and added one each."""
    (site.workspace / "a.txt").write_text(LINES)
    git(site.workspace, "commit", "-q", "-a", "-m", "lines")
    await change(site, "first", LINES.replace("1", "first"))
    await change(site, "last", LINES.replace("6", "last"))
    return site


async def change(site: Site, tree: str, text: str, path: str = "a.txt") -> None:
    await site.run(tree, "write_file", path=path, content=text)
    await site.run(tree, "write_file", path=f"{tree}.txt", content=tree)


async def merged(site: Site, *steps: str, **more: Any) -> Any:
    return (await site.merge(merge_tool(site.root), steps=list(steps), **more)).value


async def refused(site: Site, *steps: str, **more: Any) -> ApplicationError:
    """The error of a merge after which every branch, file and index is as before."""
    before = state(site)
    with pytest.raises(ApplicationError) as caught:
        await merged(site, *steps, **more)
    assert state(site) == before
    return caught.value


def state(site: Site) -> list[str]:
    asked = (("for-each-ref",), ("status", "--porcelain"), ("diff", "HEAD"), ("rev-parse", "HEAD"))
    return [git(site.workspace, *each) for each in asked]


async def test_each_step_is_one_commit_on_the_branch_that_is_checked_out(two: Site) -> None:
    value = await merged(two, "first", "last")
    assert two.log("main") == ["Do last", "Do first", "lines", "first"]
    assert value == {"commits": two.log("main", "%H")[1::-1], "conflicts": []}
    assert two.log("main", "%(trailers:only)%x00")[0].startswith("Plan: p")
    text = LINES.replace("1", "first").replace("6", "last")
    assert (two.workspace / "a.txt").read_text() == text
    assert (two.workspace / "last.txt").read_text() == "last"
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_the_strategy_merge_gives_a_merge_commit_each(two: Site) -> None:
    await merged(two, "first", "last", strategy="merge")
    assert git(two.workspace, "log", "--first-parent", "--format=%s", "main").split("\n")[:2] == [
        "Merge plans/p/last", "Merge plans/p/first",
    ]  # fmt: skip
    assert git(two.workspace, "branch", "--no-merged", "main") == ""
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_branch_that_is_not_checked_out_moves_without_files(two: Site) -> None:
    git(two.workspace, "branch", "release")
    await merged(two, "last", into="release")
    assert two.log("release")[0] == "Do last"
    assert two.log("main")[0] == "lines"
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_conflict_names_the_files_and_merges_none_of_the_steps(two: Site) -> None:
    await change(two, "other", LINES.replace("1", "other"))
    error = await refused(two, "last", "first", "other")
    assert error.type == "WORKTREE_CONFLICT"
    assert "step 'other' conflicts with the branch in a.txt" in error.message


async def test_what_a_person_has_not_committed_is_not_touched(two: Site) -> None:
    (two.workspace / "b.txt").write_text("mine\n")
    assert (await refused(two, "first")).type == "WORKTREE_DIRTY"
    git(two.workspace, "checkout", "-q", "b.txt")
    (two.workspace / "first.txt").write_text("untracked, and in the way\n")
    assert (await refused(two, "first")).type == "WORKTREE_DIRTY"
    assert (two.workspace / "first.txt").read_text() == "untracked, and in the way\n"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ({"steps": ["none"]}, "WORKTREE_MISSING", "step 'none' has no worktree"),
        ({"into": "nowhere"}, "WORKTREE_REFUSED", "no branch 'nowhere'"),
        ({"into": "../../main"}, "WORKTREE_REFUSED", "can have no branch called"),
        ({"into": "-x"}, "WORKTREE_REFUSED", "no branch"),
        ({"into": "elsewhere"}, "WORKTREE_REFUSED", "is checked out in"),
    ],
    ids=lambda each: str(each)[:30],
)
async def test_a_merge_that_cannot_be_is_refused(two: Site, args: dict[str, Any], code: str, said: str) -> None:
    git(two.workspace, "worktree", "add", "-q", "-b", "elsewhere", str(two.root.parent / "elsewhere"))
    error = await refused(two, *args.pop("steps", ["first"]), **args)
    assert (error.type, said in error.message) == (code, True), error.message


async def test_an_attempt_after_a_killed_one_finishes_the_same_merge(two: Site) -> None:
    here, tool = two.attempts.but(step="m", again=True), merge_tool(two.root)
    old = git(two.workspace, "rev-parse", "main")
    first = await here.run(tool, steps=["first", "last"])
    new = git(two.workspace, "rev-parse", "main")
    git(two.workspace, "update-ref", "refs/heads/main", old)  # as if it had died before the branch was moved
    assert (await here.run(tool, steps=["first", "last"])).value == first.value
    assert git(two.workspace, "rev-parse", "main") == new
    assert git(two.workspace, "status", "--porcelain") == ""
    assert (await here.run(tool, steps=["first", "last"])).value == first.value  # or after that
    assert two.log("main")[:3] == ["Do last", "Do first", "lines"]


async def test_a_step_that_changed_nothing_is_no_commit(two: Site) -> None:
    await two.run("idle", "read_file", path="a.txt")
    assert (await merged(two, "idle"))["commits"] == []


async def test_the_items_of_a_loop_are_merged_by_its_id(site: Site) -> None:
    for key in "xy":
        await site.run(f"each[{key}]", "write_file", path=f"{key}.txt", content=key)
    assert len((await merged(site, "each"))["commits"]) == 2
    assert {"x.txt", "y.txt"} <= set(os.listdir(site.workspace))  # noqa: PTH208


async def test_a_merged_commit_keeps_its_author(two: Site) -> None:
    git(two.workspace, "config", "user.name", "Ann")
    await change(two, "hers", "x", path="c.txt")
    git(two.workspace, "config", "user.name", "Bob")
    await merged(two, "first", "hers")
    assert two.log("main", "%an, %cn")[:2] == ["Ann, Bob", "plan, plan"]


def test_nothing_of_ours_is_left_in_the_repository_but_branches(site: Site) -> None:
    assert not Path(site.workspace, ".git", "worktrees").exists()

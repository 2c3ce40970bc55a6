"""Calls in worktrees of real repositories: where they write, what is committed, and what is refused beforehand."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.features.upkeep.sweep import cleared
from plansurvive.features.worktrees.leftovers import LEFTOVERS
from plansurvive.features.worktrees.merge_tool import merge_tool
from plansurvive.plans.activity_io import Return
from plansurvive.runtime.settings import Settings
from tests.features.worktrees.repositories import Site, git


def head_of(site: Site) -> tuple[str, str]:
    """What must stay as it is in the workspace."""
    return git(site.workspace, "rev-parse", "HEAD"), git(site.workspace, "status", "--porcelain")


async def refusal(site: Site, tree: str = "fix") -> ApplicationError:
    """The error of a call whose worktree cannot be had; the workspace and its branches are as before."""
    before = git(site.workspace, "for-each-ref") if (site.workspace / ".git").is_dir() else ""
    with pytest.raises(ApplicationError) as caught:
        await site.run(tree, "write_file", path="new.txt", content="x")
    if before:
        assert git(site.workspace, "for-each-ref") == before
    assert not (site.workspace / "new.txt").exists()
    assert list(site.trees.all()) == []
    return caught.value


async def test_a_step_writes_in_its_worktree_and_its_branch_has_one_commit_of_it(site: Site) -> None:
    before = head_of(site)
    done = await site.run("fix", "write_file", title="Fix the greeting", path="a.txt", content="three\n")
    assert head_of(site) == before
    assert (site.workspace / "a.txt").read_text() == "one\n"
    assert site.show("plans/p/fix", "a.txt") == "three"
    assert site.log("plans/p/fix") == ["Fix the greeting", "first"]
    assert site.log("plans/p/fix", "%(trailers:only,unfold)")[:2] == ["Plan: p", "Step: fix"]
    note = done.parts["worktrees"]
    assert (note.branch, note.commit) == ("plans/p/fix", git(site.workspace, "rev-parse", "plans/p/fix"))
    assert list(done.wrote) == ["worktree:fix:a.txt"]


async def test_what_a_step_changes_in_several_calls_is_one_commit(site: Site) -> None:
    for number in range(3):
        await site.run("fix", "write_file", path=f"{number}.txt", content="x")
    assert site.log("plans/p/fix") == ["Do fix", "first"]
    assert git(site.workspace, "ls-tree", "--name-only", "plans/p/fix").split() == [
        *("0.txt", "1.txt", "2.txt", "a.txt", "b.txt")
    ]  # fmt: skip


async def test_steps_of_a_block_share_its_worktree_with_a_commit_each(site: Site) -> None:
    await site.run("block", "write_file", step="block.one", path="new.txt", content="x")
    assert (await site.run("block", "read_file", step="block.two", path="new.txt")).value == "x"
    await site.run("block", "write_file", step="block.two", path="more.txt", content="z")
    assert site.log("plans/p/block") == ["Do block.two", "Do block.one", "first"]


async def test_items_of_a_loop_have_a_branch_each(site: Site) -> None:
    names = [f"each[{key}]" for key in ("a.b", "a b", "ä/..", "x" * 100)]
    await asyncio.gather(*(site.run(name, "write_file", path="a.txt", content=name) for name in names))
    branches = git(site.workspace, "branch", "--list", "plans/p/*", "--format=%(refname:short)").split()
    assert sorted(site.show(each, "a.txt") for each in branches) == sorted(names)


async def test_a_command_works_in_the_worktree_and_can_ask_git_about_it(site: Site) -> None:
    command = (
        "echo more >> a.txt && mkdir -p deep && echo x > deep/x.txt && git status --porcelain && git log --format=%s"
    )
    done = await site.run("fix", "run_command", command=command)
    assert done.value["stdout"].split("\n")[:2] == [" M a.txt", "?? deep/"]
    assert site.show("plans/p/fix", "a.txt") == "one\nmore"
    assert site.show("plans/p/fix", "deep/x.txt") == "x"


async def test_a_failed_call_is_in_no_commit_and_a_retry_finds_what_it_left(site: Site) -> None:
    with pytest.raises(ApplicationError):
        await site.run("fix", "run_command", command="echo x > left.txt; exit 3")
    assert site.log("plans/p/fix") == ["first"]
    await site.run("fix", "run_command", command="cat left.txt && echo y >> left.txt")
    assert site.show("plans/p/fix", "left.txt") == "x\ny"


async def test_a_read_commits_nothing(site: Site) -> None:
    done: Return = await site.run("fix", "read_file", path="a.txt")
    assert (done.value, done.parts, list(done.read)) == ("one\n", {}, ["worktree:fix:a.txt"])


async def test_ignored_files_stay_out_of_the_commit(site: Site) -> None:
    (site.workspace / ".git" / "info" / "exclude").write_text("*.log\n")
    await site.run(
        "fix", "run_command", command="echo x > a.log; echo '*.tmp' > .gitignore; echo x > b.tmp; echo y > c.txt"
    )
    names = git(site.workspace, "ls-tree", "--name-only", "plans/p/fix").split()
    assert names == [".gitignore", "a.txt", "b.txt", "c.txt"]


async def test_worktrees_of_plans_that_the_server_has_no_more_are_pruned_and_their_branches_stay(site: Site) -> None:
    for plan in ("gone", "here", "resumed", "new"):
        await site.run("fix", "write_file", plan=plan, path="c.txt", content="x")
    await site.merge(merge_tool(site.root), steps=["fix"], plan="gone")
    os.utime(site.files("fix", "new").parent / "record.json", (2e9, 2e9))
    settings = Settings.read({"PLANS_WORKTREES": str(site.root)})
    ids = ["plan-here", "plan-resumed-r2", "agent-x"]
    for dry_run in (True, False):
        assert cleared(settings, [LEFTOVERS], ids, 1.9e9, dry_run) == {"worktrees": 1}
        assert (len(list(site.trees.all())), (site.root / "gone").exists()) == (4 if dry_run else 3, dry_run)
    assert cleared(settings, [LEFTOVERS], ids, 1.9e9, dry_run=False) == {}
    assert site.show("plans/gone/fix", "c.txt") == "x"


Damage = Callable[[Site], object]
NO_REPOSITORY = {
    "is not a git repository": lambda site: shutil.rmtree(site.workspace / ".git"),
    "detached HEAD": lambda site: git(site.workspace, "checkout", "-q", "--detach"),
    "not committed: a.txt": lambda site: (site.workspace / "a.txt").write_text("other"),
    "link in place of .git": lambda site: _link(site.workspace / ".git"),
    "link in its git directory, objects": lambda site: _link(site.workspace / ".git" / "objects"),
    "not that of a linked worktree": lambda site: _pointer(site.workspace),
    "Git LFS": lambda site: _committed(site, ".gitattributes", "*.bin filter=lfs diff=lfs\n"),
    "through the filter 'crypt'": lambda site: _info(site, "* text filter=crypt\n"),
    "submodules (sub)": lambda site: _submodule(site),
    "bare repository": lambda site: _bare(site),
    "branch called 'plans'": lambda site: git(site.workspace, "branch", "plans"),
    "the branch plans/p/fix is there": lambda site: git(site.workspace, "branch", "plans/p/fix"),
    "is inside the repository": lambda site: shutil.move(site.workspace / ".git", site.workspace.parent / ".git"),
}  # fmt: skip


@pytest.mark.parametrize("said", NO_REPOSITORY)
async def test_what_no_worktree_can_be_made_of_is_refused_before_anything_changes(said: str, site: Site) -> None:
    damage: Damage = NO_REPOSITORY[said]
    damage(site)
    error = await refusal(site)
    assert said in error.message
    assert error.type in ("WORKTREE_REFUSED", "WORKTREE_DIRTY", "WORKTREE_MOVED")
    assert error.non_retryable


async def test_a_repository_without_a_commit_is_refused(site: Site) -> None:
    git(site.workspace, "checkout", "-q", "--orphan", "empty")
    assert "no commit yet" in (await refusal(site)).message


async def test_staged_changes_are_not_left_behind_either(site: Site) -> None:
    (site.workspace / "a.txt").write_text("staged\n")
    git(site.workspace, "add", "a.txt")
    (site.workspace / "a.txt").write_text("one\n")
    assert (await refusal(site)).type == "WORKTREE_DIRTY"


async def test_untracked_files_do_not_matter(site: Site) -> None:
    (site.workspace / "untracked.txt").write_text("x")
    await site.run("fix", "write_file", path="c.txt", content="x")
    assert not (site.files("fix") / "untracked.txt").exists()


async def test_a_workspace_that_is_a_linked_worktree_itself_works(site: Site, tmp_path: Path) -> None:
    git(site.workspace, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Site(site.attempts.but(workspace=tmp_path / "side"), site.root)
    await side.run("fix", "write_file", path="a.txt", content="x")
    assert site.show("plans/p/fix", "a.txt") == "x"


async def test_a_branch_that_somebody_else_moved_is_not_overwritten(site: Site) -> None:
    await site.run("fix", "write_file", path="a.txt", content="x")
    git(site.workspace, "branch", "-f", "plans/p/fix", "main")
    with pytest.raises(ApplicationError) as caught:
        await site.run("fix", "write_file", path="a.txt", content="y", step="other")
    assert caught.value.type == "WORKTREE_MOVED"
    assert site.log("plans/p/fix") == ["first"]


def _link(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def _pointer(workspace: Path) -> None:
    (workspace / ".git").rename(workspace.parent / "hidden.git")
    (workspace / ".git").write_text(f"gitdir: {workspace.parent}/hidden.git\n")


def _committed(site: Site, name: str, text: str) -> None:
    (site.workspace / name).write_text(text)
    git(site.workspace, "add", name)
    git(site.workspace, "commit", "-q", "-m", "more")


def _info(site: Site, text: str) -> None:
    (site.workspace / ".git" / "info" / "attributes").write_text(text)


def _submodule(site: Site) -> None:
    commit = git(site.workspace, "rev-parse", "HEAD")
    git(site.workspace, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    git(site.workspace, "commit", "-q", "-m", "sub")


def _bare(site: Site) -> None:
    for each in [*(site.workspace / ".git").iterdir()]:
        each.rename(site.workspace / each.name)
    (site.workspace / ".git").rmdir()

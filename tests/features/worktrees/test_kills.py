"""A real SIGKILL of the worker at each command of git in commits and merges, and what the next attempt finds.

`git` is a program of the test that kills the process which called it, at the command of a number: before the real git
runs, as it runs (which then outlives the worker), or after it has.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.features.worktrees.following import Following
from plansurvive.features.worktrees.git import Git
from plansurvive.features.worktrees.merging import Call, Merged, merge, revert
from plansurvive.features.worktrees.model import WorktreeOrder
from plansurvive.features.worktrees.repository import Repository
from plansurvive.features.worktrees.trees import Trees
from plansurvive.plans.errors import ToolError
from tests.features.worktrees.repositories import git, made
from tests.nightly import sampled

MOMENTS = {
    "before": "kill -9 $PPID; exit 1",
    "while it runs": 'kill -9 $PPID; exec {git} "$@"',
    "after": '{git} "$@"; kill -9 $PPID',
}
SCRIPT = """#!/bin/sh
n=$(cat {folder}/count); n=$((n+1)); echo $n > {folder}/count
if [ $n = {at} ]; then {moment}; fi
exec {git} "$@"
"""
MOST = 60
"""More commands than any of these needs: the tests look that it is so."""
CASES = [(number, moment) for number in range(1, MOST) for moment in MOMENTS]


class Killing:
    """A repository with two worktrees, and work in them that a kill may interrupt."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, made(folder / "w", a="1\n2\n3\n4\n5\n", b="b\n", c="c\n")
        self.trees, self.commits = Trees(folder / "trees"), list[str]()

    def change(self, tree: str, **files: str | None) -> None:
        """Work of a step, in its worktree: texts of NAME.txt; None: it deletes the file."""
        order = WorktreeOrder(plan="p", tree=tree, step=tree, title=f"Do {tree}")
        opened = self.trees.opened(order, str(self.workspace))
        for name, text in files.items():
            place = Path(opened.path, f"{name}.txt")
            if text is None:
                place.unlink(missing_ok=True)
            else:
                place.write_text(text)
        self.trees.committed(opened, order)

    def red(self) -> None:
        """The work of the first step."""
        self.change("red", a="red\n2\n3\n4\n5\n", b=None, new="new\n")

    def blue(self) -> None:
        """The work of the second."""
        self.change("blue", a="1\n2\n3\n4\nblue\n", other="x\n")

    def merge(self) -> Merged:
        """Both onto main."""
        return merge(self.trees, str(self.workspace), Call("p", "m", "key", None), ["red", "blue"], "rebase")

    def undo(self) -> Merged:
        """That taken back."""
        return revert(self.trees, str(self.workspace), Call("p", "m.undo", "undo", None), self.commits)

    def killed(self, work: Callable[[], object], number: int, moment: str) -> bool:
        """Whether the process that did it was killed by the command of this number; it is over then."""
        real, programs = shutil.which("git"), self.folder / "programs"
        assert real is not None
        programs.mkdir(exist_ok=True)
        (self.folder / "count").write_text("0")
        at = {"folder": self.folder, "at": number, "git": real, "moment": MOMENTS[moment].format(git=real)}
        (programs / "git").write_text(SCRIPT.format(**at))
        (programs / "git").chmod(0o755)
        if (child := os.fork()) == 0:
            os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
            try:
                work()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

    def whole(self, branch: str, *subjects: str) -> None:
        """That a branch has these commits, once each, and nothing of a merge is left."""
        assert git(self.workspace, "log", "--format=%s", branch).split("\n") == list(subjects)
        assert git(self.workspace, "status", "--porcelain") == ""
        assert not [each for each in os.listdir(self.workspace / ".git") if each.startswith(("plans-", "index."))]  # noqa: PTH208
        git(self.workspace, "fsck", "--strict")


@pytest.fixture
def site(tmp_path: Path) -> Killing:
    """The work that is killed."""
    return Killing(tmp_path)


@pytest.mark.parametrize(("number", "moment"), sampled(CASES, 1, 4))
def test_a_kill_inside_a_commit_leaves_one_commit(number: int, moment: str, site: Killing) -> None:
    was_killed = site.killed(site.red, number, moment)
    assert was_killed or number > 20
    site.red()
    assert git(site.workspace, "log", "--format=%s", "plans/p/red").split("\n") == ["Do red", "first"]
    assert git(site.workspace, "show", "plans/p/red:new.txt") == "new"
    site.whole("main", "first")


@pytest.mark.parametrize(("number", "moment"), sampled(CASES, 1, 8))
def test_a_kill_inside_a_merge_leaves_the_whole_merge_once(number: int, moment: str, site: Killing) -> None:
    site.red()
    site.blue()
    was_killed = site.killed(site.merge, number, moment)
    assert was_killed or number > 30
    site.merge()
    site.whole("main", "Do blue", "Do red", "first")
    assert (site.workspace / "a.txt").read_text() == "red\n2\n3\n4\nblue\n"
    assert not (site.workspace / "b.txt").exists()
    assert (site.workspace / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize(("number", "moment"), sampled(CASES, 0, 4))
def test_a_kill_inside_an_undo_takes_everything_back_once(number: int, moment: str, site: Killing) -> None:
    site.red()
    site.blue()
    site.commits = site.merge().commits
    was_killed = site.killed(site.undo, number, moment)
    assert was_killed or number > 30
    site.undo()
    site.whole("main", 'Revert "Do red"', 'Revert "Do blue"', "Do blue", "Do red", "first")
    assert (site.workspace / "a.txt").read_text() == "1\n2\n3\n4\n5\n"
    assert (site.workspace / "b.txt").read_text() == "b\n"
    assert not (site.workspace / "new.txt").exists()


def test_a_kill_between_two_files_is_finished_by_the_next_attempt(site: Killing) -> None:
    site.red()
    merged = begun(site)
    following = following_of(site, merged)
    following._lock_index()  # as if it had died after the first file
    following._put(list(following._changes())[:1], merged.new)
    assert git(site.workspace, "rev-parse", "main") == merged.old
    site_merge(site)
    site.whole("main", "Do red", "first")


def test_what_a_person_has_changed_after_a_kill_is_left_and_the_rest_put_back(site: Killing) -> None:
    site.red()
    merged = begun(site)
    following = following_of(site, merged)
    following._lock_index()
    following._put(list(following._changes()), merged.new)
    (site.workspace / "a.txt").write_text("mine\n")
    with pytest.raises(ToolError) as caught:
        site_merge(site)
    assert caught.value.code == "WORKTREE_DIRTY"
    assert "a.txt" in caught.value.message
    assert (site.workspace / "a.txt").read_text() == "mine\n"
    assert git(site.workspace, "status", "--porcelain") == " M a.txt"


def test_another_git_that_holds_the_index_is_waited_for_by_a_retry(site: Killing) -> None:
    site.red()
    (site.workspace / ".git" / "index.lock").write_text("")
    with pytest.raises(ToolError) as caught:
        site_merge(site)
    assert (caught.value.code, caught.value.retryable) == ("FILE_BUSY", True)
    (site.workspace / ".git" / "index.lock").unlink()
    site_merge(site)
    site.whole("main", "Do red", "first")


def test_a_merge_on_which_others_have_built_meanwhile_is_made_already(site: Killing) -> None:
    site.red()
    merged = site_merge(site)
    git(site.workspace, "commit", "-q", "--allow-empty", "-m", "since")
    assert site_merge(site) == merged
    site.whole("main", "since", "Do red", "first")


def site_merge(site: Killing) -> Merged:
    """The work of one step, by the same call."""
    return merge(site.trees, str(site.workspace), Call("p", "m", "key", None), ["red"], "rebase")


def begun(site: Killing) -> Merged:
    """A merge that is written down, and of which nothing has been done."""
    merged = site_merge(site)
    git(site.workspace, "reset", "-q", "--hard", merged.old)
    return merged


def following_of(site: Killing, merged: Merged) -> Following:
    """What has the files follow it."""
    repository, folder = Repository.of(str(site.workspace)), site.trees.folder_of_merge("p", "key")
    return Following(repository, Git(str(folder / "git"), repository.objects), folder.name, merged.old, merged.new)

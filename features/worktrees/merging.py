"""Merges the branches of worktrees into a branch of the workspace, all or none.

Commits are made one on the other in the object store, without files and in a git directory of our own; only when all
of them fit is the branch moved, by a fast-forward. With `rebase` each commit of a worktree is made again on the branch;
with `merge` each worktree is one merge commit. Where the branch is checked out, its files follow it.

What is about to be is written down first: an attempt that follows a killed one finishes the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plansurvive.features.worktrees.git import REFUSED, Git, GitFailed
from plansurvive.features.worktrees.repository import Repository
from plansurvive.features.worktrees.trees import MOVED, Tree, Trees, commit_of, init, short
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.base.atomic_file import write_whole

CONFLICT = "WORKTREE_CONFLICT"
MISSING = "WORKTREE_MISSING"
OLDEST = (2, 38)
"""The version of git that merges without files."""
MAX_SHOWN = 10
Strategy = Literal["rebase", "merge"]


class Merged(Value):
    """A merge that is about to be, or has been made."""

    key: str
    """Of the call."""
    into: str
    """The full name of the branch."""
    old: str
    new: str
    commits: list[str]


@dataclass(frozen=True)
class Asked:
    """What a call asks for."""

    plan: str
    steps: Sequence[str]
    into: str | None
    strategy: Strategy
    key: str
    title: str


def merge(trees: Trees, workspace: str, asked: Asked) -> Merged:
    """Merge the worktrees of these steps. May block. Raises ToolError; nothing has changed then."""
    repository, folder = Repository.of(workspace), trees.folder_of_merge(asked.plan, asked.key)
    with trees.held(folder):
        if (begun := _begun(folder, asked.key)) is not None:
            return _finished(repository, folder, begun)
        into = f"refs/heads/{asked.into}" if asked.into else repository.branch()
        repository.check_reference(into)
        old = repository.tip(into)
        if old is None:
            raise ToolError(REFUSED, f"{line(workspace)} has no branch '{line(short(into))}'; see: git branch")
        found = _chosen(trees, repository, workspace, asked)
        git = _prepared(folder, repository, into, old)
        if into == _checked_out(repository):
            repository.check_clean(git)
        elif (place := _elsewhere(repository, into)) is not None:
            text = f"the branch {short(into)} is checked out in {line(place)}, whose files a merge would leave behind"
            raise ToolError(REFUSED, f"{text}; merge into another branch, or check out another one there")
        commits: list[str] = []
        for tree in found:
            commits += _joined(git, repository, tree, commits[-1] if commits else old, asked)
        merged = Merged(key=asked.key, into=into, old=old, new=commits[-1] if commits else old, commits=commits)
        write_whole(folder / "merge.json", merged.model_dump_json().encode())
        return _finished(repository, folder, merged)


def _begun(folder: Path, key: str) -> Merged | None:
    with suppress(OSError, ValueError):
        found = Merged.model_validate_json((folder / "merge.json").read_bytes())
        if found.key == key:
            return found
    return None


def _chosen(trees: Trees, repository: Repository, workspace: str, asked: Asked) -> list[Tree]:
    """The worktrees of the steps, each once, at the commit that the plan left it at."""
    found: dict[Path, Tree] = {}
    for step in asked.steps:
        own = [each for each in trees.of_step(asked.plan, step) if each.record.workspace == workspace]
        if not own:
            text = f"step '{line(step)}' has no worktree on this machine"
            raise ToolError(MISSING, f"{text}; name steps with `worktree: true` that have run: plan worktrees")
        found |= {each.folder: each.settled(repository) for each in own}
    return list(found.values())


def _prepared(folder: Path, repository: Repository, into: str, old: str) -> Git:
    """A git directory of our own whose HEAD is the branch. Raises ToolError if git is too old."""
    git = Git(str(folder / "git"), repository.objects, person=repository.person())
    if (folder / "git").exists():
        shutil.rmtree(folder / "git")
    init(folder / "git", repository, into)
    words = git.text("version").split()
    version = tuple(int(part) for part in words[2].split(".")[:2])
    if version < OLDEST:
        text = f"merges need git {OLDEST[0]}.{OLDEST[1]} or later, and this worker has {words[2]}"
        raise ToolError(REFUSED, f"{text}; install a newer one, or merge by hand: git merge plans/PLAN/STEP")
    git.run("update-ref", into, old)
    return git


def _joined(git: Git, repository: Repository, tree: Tree, onto: str, asked: Asked) -> list[str]:
    """The commits that bring a worktree onto a commit, oldest first; none if it has changed nothing.

    Raises ToolError WORKTREE_CONFLICT.
    """
    record = tree.record
    if record.tip == record.base:
        return []
    if asked.strategy == "merge":
        content = _merged(git, tree, onto, record.tip)
        title = f"Merge {short(record.branch)}"
        return [commit_of(git, content, onto, title, asked.plan, record.tree, repository, record.tip)]
    made: list[str] = []
    for commit in git.text("rev-list", "--reverse", "--first-parent", f"{record.base}..{record.tip}").split("\n"):
        # A commit as if the branch had begun where this one did: what both have in common is then that place alone.
        before, here = git.text("rev-parse", f"{commit}^"), made[-1] if made else onto
        if before == here:
            made.append(commit)
            continue
        stand_in = git.text("commit-tree", f"{here}^{{tree}}", "-p", before, "-m", "onto", given=b"")
        content = _merged(git, tree, stand_in, commit)
        if content != git.text("rev-parse", f"{here}^{{tree}}"):
            made.append(_again(git, repository, commit, content, here))
    return made


def _again(git: Git, repository: Repository, commit: str, content: str, parent: str) -> str:
    """A commit with its message and author, on another parent."""
    name, email, when, text = git.text("show", "-s", "--format=%an%x00%ae%x00%ad%x00%B", "--date=raw", commit).split(
        "\0"
    )
    person = repository.person()
    given = {**person, "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": when}
    return Git(git.directory, git.objects, person=given).text(
        "commit-tree", content, "-p", parent, given=(text.rstrip("\n") + "\n").encode()
    )


def _merged(git: Git, tree: Tree, onto: str, commit: str) -> str:
    """The tree object of a merge. Raises ToolError WORKTREE_CONFLICT with the files."""
    try:
        return git.text("merge-tree", "--write-tree", "--name-only", "--no-messages", onto, commit)
    except GitFailed as failure:
        if failure.exit_code != 1:
            raise
        rows = failure.output.decode("utf-8", "replace").rstrip("\n").split("\n")[1:]
        names = ", ".join(line(row) for row in dict.fromkeys(rows[:MAX_SHOWN]))
        more = f" and {len(rows) - MAX_SHOWN} more" if len(rows) > MAX_SHOWN else ""
        text = f"the work of step '{line(tree.record.tree)}' conflicts with the branch in {names}{more}"
        way = f"git merge {short(tree.record.branch)} in the workspace lets a person resolve it"
        raise ToolError(CONFLICT, f"{text}; nothing was merged. {way}") from None


def _finished(repository: Repository, folder: Path, merged: Merged) -> Merged:
    """Move the branch, and the files where it is checked out: those first, as a branch without its files looks like
    work that undoes it. Raises ToolError WORKTREE_MOVED if somebody else has moved it.
    """
    tip = repository.tip(merged.into)
    if tip == merged.new:
        return merged
    if tip != merged.old:
        (folder / "merge.json").unlink(missing_ok=True)
        text = f"the branch {short(merged.into)} has moved on meanwhile; nothing was merged"
        raise ToolError(MOVED, f"{text}; run the step again")
    if merged.into == _checked_out(repository):
        files = Git(str(folder / "git"), repository.objects, repository.workspace, f"{repository.directory}/index")
        try:
            files.run("read-tree", "-m", "-u", merged.old, merged.new)
        except GitFailed as failure:
            (folder / "merge.json").unlink(missing_ok=True)
            text = f"the files of {line(repository.workspace)} could not follow the merge, and nothing was merged"
            raise ToolError(
                "WORKTREE_DIRTY", f"{text}: {failure.said}; move them away, and run the step again"
            ) from None
    repository.move(merged.into, merged.new, merged.old, f"plan: merge {len(merged.commits)} commits of worktrees")
    return merged


def _checked_out(repository: Repository) -> str | None:
    with suppress(ToolError):
        return repository.branch()
    return None


def _elsewhere(repository: Repository, branch: str) -> str | None:
    """The git directory of another worktree of the repository where a branch is checked out; None: in none."""
    for own in (repository.common, *map(str, Path(repository.common, "worktrees").glob("*"))):
        with suppress(OSError):
            if Path(own, "HEAD").read_text().strip() == f"ref: {branch}" and os.path.realpath(own) != os.path.realpath(
                repository.directory
            ):
                return own
    return None

"""Merges the branches of worktrees into a branch of the workspace, and takes merges back: all or none.

Commits are made one on the other in the object store, without files and in a git directory of our own; only when all
of them fit is the branch moved, by a fast-forward. With `rebase` each commit of a worktree is made again on the branch;
with `merge` each worktree is one merge commit; each commit that is taken back is one more, which reverts it. Where the
branch is checked out, its files follow it (`following`).

What is about to be is written down first: an attempt that follows a killed one finishes the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from plansurvive.activities.workspace.file_names import native
from plansurvive.features.worktrees.conflicts import CONFLICT, Merging
from plansurvive.features.worktrees.following import Following
from plansurvive.features.worktrees.git import REFUSED, Git, GitFailed
from plansurvive.features.worktrees.model import Choice, WorktreeOrder
from plansurvive.features.worktrees.repository import DIRTY, Repository
from plansurvive.features.worktrees.trees import (
    MOVED,
    Brought,
    Tree,
    Trees,
    caught_up,
    commit_of,
    init,
    read,
    short,
    staged,
    write_record,
)
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.base.atomic_file import write_whole

MISSING = "WORKTREE_MISSING"
OLDEST = (2, 38)
"""The version of git that merges without files."""
_MARKS = {b"<<<<<<< ", b">>>>>>> "}
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
class Call:
    """The call that changes a branch."""

    plan: str
    step: str
    key: str
    into: str | None
    """The branch; None: the one that is checked out."""


Make = Callable[[Git, Repository, str, str], list[str]]
"""Makes the commits, oldest first, that a branch of this name and tip is moved over."""


def merge(
    trees: Trees, workspace: str, call: Call, steps: Sequence[str], strategy: Strategy, chosen: Sequence[Choice] = ()
) -> Merged:
    """Merge the worktrees of these steps. May block. Raises ToolError, Conflict too; nothing has changed then."""

    def make(git: Git, repository: Repository, into: str, old: str) -> list[str]:
        commits: list[str] = []
        for tree in _chosen(trees, repository, workspace, call, steps):
            what = f"the work of step '{line(tree.record.tree)}'"
            way = f"git merge {short(tree.record.branch)} in the workspace lets a person resolve it"
            merging = Merging(git, into, what, way, chosen)
            commits += _joined(merging, repository, tree, commits[-1] if commits else old, call, strategy)
        return commits

    return _moved(trees, workspace, call, make)


def bring(
    trees: Trees, tree: Tree, order: WorktreeOrder, key: str, steps: Sequence[str], strategy: Strategy
) -> tuple[str, Brought]:
    """Merge the worktrees of these steps into another one, where later steps resolve what is in conflict.

    From the first conflict on, all is one commit, with marks in the files; what the next step changes replaces it.
    Returns the branch and what it has got. May block. Raises ToolError.
    """
    with trees.held(tree.folder):
        repository = Repository.of(tree.record.workspace)
        tree = caught_up(read(tree.folder) or tree).settled(repository)
        record, call = tree.record, Call(order.plan, order.step, key, None)
        git = replace(tree.git(repository), person=repository.person())
        if record.brought is not None and record.brought.key == key:
            return short(record.branch), record.brought
        if staged(tree, repository) != git.text("rev-parse", f"{record.tip}^{{tree}}"):
            text = f"the worktree of '{line(record.tree)}' has changes that are in no commit, of a step that failed"
            raise ToolError(DIRTY, f"{text}; run that step again first, or take them back in {line(tree.path)}")
        commits, marks, last = list[str](), list[str](), record.tip
        for other in _chosen(trees, repository, record.workspace, call, steps):
            merging = Merging(git, short(record.branch), other.record.tree, marks=marks)
            joined = _joined(merging, repository, other, last, call, strategy)
            last = joined[-1] if joined else last
            commits += [] if marks else joined
        if marks:
            content, onto = git.text("rev-parse", f"{last}^{{tree}}"), commits[-1] if commits else record.tip
            commits.append(commit_of(git, content, onto, order.title, order.plan, order.step, repository))
        brought = Brought(key=key, commits=commits, conflicts=marks)
        new = commits[-1] if commits else record.tip
        marked = {"marked": tuple(dict.fromkeys([*record.marked, *marks])), "is_open": bool(marks), "is_behind": True}
        record = record.model_copy(update={"next": (new, order.step), "brought": brought, **marked})
        write_record(tree.folder, record)
        git.run("update-ref", record.branch, new)
        repository.move(record.branch, new, record.tip, f"plan {order.plan}: step {order.step}")
        caught_up(Tree(tree.folder, record))
        return short(record.branch), brought


def revert(trees: Trees, workspace: str, call: Call, commits: Sequence[str]) -> Merged:
    """Take commits of a branch back, the last one first, each by a commit. As `merge`."""

    def make(git: Git, repository: Repository, into: str, old: str) -> list[str]:
        made: list[str] = []
        for commit in reversed(commits):
            if not _is_on(git, commit, old):
                text = f"commit {line(commit[:12])} is not on the branch {into} (any more), so there is nothing to undo"
                raise ToolError(REFUSED, f"{text}; see: git log {into}")
            merging = Merging(git, into, f"undoing commit {commit[:12]}", f"Undo it by hand: git revert {commit[:12]}")
            here = made[-1] if made else old
            before = git.text("rev-parse", f"{commit}^1")
            content = merging.picked(commit, here, before)
            if content != git.text("rev-parse", f"{here}^{{tree}}"):
                title = git.text("show", "-s", "--format=%s", commit)
                about = f'Revert "{title}"\n\nThis reverts commit {commit}.'
                made.append(commit_of(git, content, here, about, call.plan, call.step, repository))
        return made

    return _moved(trees, workspace, call, make)


def changed_files(workspace: str, merged: Merged) -> list[tuple[str, bool]]:
    """The files of the workspace that a merge has changed, and whether each is there now; none, if it has another
    branch checked out. May block.
    """
    repository = Repository.of(workspace)
    if merged.into != _checked_out(repository) or merged.old == merged.new:
        return []
    rows = repository.references.run("diff-tree", "-r", "-z", "--name-status", "--no-renames", merged.old, merged.new)
    words = [os.fsdecode(word) for word in rows.split(b"\0")]
    return [(path, kind != "D") for kind, path in zip(words[::2], words[1::2], strict=False)]


def _moved(trees: Trees, workspace: str, call: Call, make: Make) -> Merged:
    """Move a branch over new commits."""
    repository, folder = Repository.of(workspace), trees.folder_of_merge(call.plan, call.key)
    with trees.held(folder):
        if (begun := _begun(folder, call.key)) is not None:
            return _finished(repository, folder, begun)
        into = f"refs/heads/{call.into}" if call.into else repository.branch()
        repository.check_reference(into)
        old = repository.tip(into)
        if old is None:
            raise ToolError(REFUSED, f"{line(workspace)} has no branch '{line(short(into))}'; see: git branch")
        git = _prepared(folder, repository, into, old)
        if into == _checked_out(repository):
            repository.check_clean(git)
        elif (place := _elsewhere(repository, into)) is not None:
            text = f"the branch {short(into)} is checked out in {line(place)}, whose files a merge would leave behind"
            raise ToolError(REFUSED, f"{text}; merge into another branch, or check out another one there")
        commits = make(git, repository, line(short(into)), old)
        merged = Merged(key=call.key, into=into, old=old, new=commits[-1] if commits else old, commits=commits)
        write_whole(folder / "merge.json", merged.model_dump_json().encode())
        return _finished(repository, folder, merged)


def _is_on(git: Git, commit: str, tip: str) -> bool:
    with suppress(GitFailed):
        return git.succeeds("merge-base", "--is-ancestor", f"{commit}^{{commit}}", tip)
    return False


def _begun(folder: Path, key: str) -> Merged | None:
    with suppress(OSError, ValueError):
        found = Merged.model_validate_json((folder / "merge.json").read_bytes())
        if found.key == key:
            return found
    return None


def _chosen(trees: Trees, repository: Repository, workspace: str, call: Call, steps: Sequence[str]) -> list[Tree]:
    """The worktrees of the steps, each once, at the commit that the plan left it at."""
    found: dict[Path, Tree] = {}
    for step in steps:
        own = [each for each in trees.named(call.plan, step, call.step) if each.record.workspace == workspace]
        if not own:
            text = f"step '{line(step)}' has no worktree on this machine"
            raise ToolError(MISSING, f"{text}; name steps with `worktree: true` that have run: plan worktrees")
        found |= {each.folder: each.settled(repository) for each in own}
    for tree in found.values():
        _check_resolved(tree, repository)
    return list(found.values())


def _check_resolved(tree: Tree, repository: Repository) -> None:
    """Raise ToolError WORKTREE_CONFLICT if a worktree has marks of conflicts that were brought into it."""
    git, record = tree.git(repository), tree.record
    left = list[str]()
    for path in record.marked:
        with suppress(GitFailed):  # it was deleted, which resolves it
            rows = git.run("cat-file", "blob", f"{record.tip}:{native(path)}").split(b"\n")
            left += [path] if _MARKS.issubset(row[:8] for row in rows) else []
    if record.is_open or left:
        names = ", ".join(line(each) for each in left or record.marked)
        text = f"conflicts that were brought into the worktree of '{line(record.tree)}' are not resolved: {names}"
        raise ToolError(CONFLICT, f"{text}; nothing has changed. Have a step edit the files, and remove all marks")


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


def _joined(
    merging: Merging, repository: Repository, tree: Tree, onto: str, call: Call, strategy: Strategy
) -> list[str]:
    """The commits that bring a worktree onto a commit, oldest first; none if it has changed nothing.

    Raises ToolError WORKTREE_CONFLICT.
    """
    git, record = merging.git, tree.record
    if record.tip == record.base:
        return []
    if strategy == "merge":
        content = merging.merged(onto, record.tip)
        title = f"Merge {short(record.branch)}"
        return [commit_of(git, content, onto, title, call.plan, record.tree, repository, record.tip)]
    made: list[str] = []
    for commit in git.text("rev-list", "--reverse", "--first-parent", f"{record.base}..{record.tip}").split("\n"):
        before, here = git.text("rev-parse", f"{commit}^"), made[-1] if made else onto
        if before == here:
            made.append(commit)
            continue
        content = merging.picked(before, here, commit)
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


def _finished(repository: Repository, folder: Path, merged: Merged) -> Merged:
    """Move the branch, and the files where it is checked out. Raises ToolError WORKTREE_MOVED if somebody else has
    moved it.
    """
    own = Git(str(folder / "git"), repository.objects)
    following = Following(repository, own, folder.name, merged.old, merged.new)
    tip = repository.tip(merged.into)
    if tip is not None and _is_on(own, merged.new, tip):  # and others may have built on it since
        following.finish()
        return merged
    try:
        if tip != merged.old:
            following.undo()
            raise _overtaken(merged)
        with following() if merged.into == _checked_out(repository) else nullcontext():
            why = f"plan: {len(merged.commits)} commits of worktrees"
            repository.move(merged.into, merged.new, merged.old, why)
    except ToolError as error:
        if not error.retryable:
            (folder / "merge.json").unlink(missing_ok=True)  # the next attempt begins from what is there then
        if isinstance(error, GitFailed) and repository.tip(merged.into) != merged.old:
            raise _overtaken(merged) from None
        raise
    return merged


def _overtaken(merged: Merged) -> ToolError:
    text = f"the branch {line(short(merged.into))} has moved on meanwhile; nothing was merged"
    return ToolError(MOVED, f"{text}; run the step again")


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

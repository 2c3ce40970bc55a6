"""The worktrees of a machine: made at the first call of a step, committed after each, and known by their records.

A worktree is a folder of ours with `tree`, the files; `git`, a git directory of its own with a configuration that we
wrote, whose objects are those of the person's repository; and `record.json`, written last. `git worktree` is not used:
its worktrees share the configuration and hooks of the repository, and steps could change what they are led to. The
files' own `.git` is only there for people and commands that look; nothing of ours reads it.

The folder that is `tree` is known by its inode: another one under its path is refused. Each change of a worktree holds
the lock beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import xxhash
from pydantic import ValidationError

from plansurvive.activities.workspace.identity import identity_of
from plansurvive.features.worktrees.git import HELD, REFUSED, Git, GitFailed
from plansurvive.features.worktrees.model import WorktreeNote, WorktreeOrder
from plansurvive.features.worktrees.repository import Repository
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import ToolError
from plansurvive.plans.flow.ids import around, slug
from plansurvive.plans.model import Value
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.base import wait
from plansurvive.runtime.base.atomic_file import write_whole

MOVED = "WORKTREE_MOVED"
"""Code of a worktree or branch that is not as we left it."""
NESTED = "WORKTREE_NESTED"
LOCK_SECONDS, LOCKS = 600.0, 256
"""Seconds to wait for the lock of a worktree; two of them may share one."""
RECORD = "record.json"


class Brought(Value):
    """The work of other worktrees that a call has merged into one."""

    key: str
    """Of the call."""
    commits: list[str]
    conflicts: list[str]
    """Files with marks around the versions that are in conflict."""


class Record(Value):
    """What is known of a worktree."""

    plan: str
    tree: str
    """The step or block that it belongs to."""
    workspace: str
    branch: str
    """The full name of its branch."""
    into: str
    """The branch that was checked out in the workspace."""
    base: str
    """The commit that it began from."""
    tip: str
    """The commit that we left its branch at."""
    last: str = ""
    """The step whose commit that is: when it changes more, the commit is replaced by a larger one."""
    next: tuple[str, str] | None = None
    """Where its branch is about to be, and by which step: a worker may be killed before or after that."""
    directory: DirectoryIdentity
    """Which directory the files are in."""
    marked: tuple[str, ...] = ()
    """Files in which work that was brought here was in conflict, with marks around the versions."""
    brought: Brought | None = None
    """What was last brought here."""
    is_open: bool = False
    """The last commit has these marks: what the next step changes replaces it."""
    is_behind: bool = False
    """The files have to follow the last commit yet."""


@dataclass(frozen=True)
class Tree:
    """A worktree that is there."""

    folder: Path
    record: Record

    @property
    def path(self) -> str:
        """The directory of its files."""
        return str(self.folder / "tree")

    @property
    def git_directory(self) -> str:
        """Its git directory, which steps may read."""
        return str(self.folder / "git")

    def git(self, repository: Repository) -> Git:
        """Git with its files; objects go to the repository."""
        return Git(self.git_directory, repository.objects, self.path)

    def settled(self, repository: Repository) -> Tree:
        """As it is: with the branch that it was about to have. Raises ToolError WORKTREE_MOVED if that is elsewhere."""
        record = self.record
        tip = repository.tip(record.branch)
        if tip is None and record.tip == record.base:
            repository.move(
                record.branch, record.base, "0" * len(record.base), f"plan {record.plan}: {record.tree} begins"
            )
        elif record.next is not None and tip == record.next[0]:
            record = record.model_copy(update={"tip": tip, "last": record.next[1], "next": None})
        elif tip != record.tip:
            found = f"at {tip[:12]}" if tip else "gone"
            text = f"the branch {short(record.branch)} is {found}, not at {record.tip[:12]}, where this plan left it"
            raise ToolError(MOVED, f"{text}; set it back: git branch -f {short(record.branch)} {record.tip[:12]}")
        return Tree(self.folder, record)

    def check(self) -> None:
        """Raise ToolError WORKTREE_MOVED if another directory is in the place of its files."""
        with suppress(OSError):
            if identity_of(self.path).is_same(self.record.directory):
                return
        text = f"the worktree {line(self.path)} is not the directory that was made for step '{line(self.record.tree)}'"
        raise ToolError(MOVED, f"{text}; put it back, or remove {line(str(self.folder))} and run the plan again")


@dataclass(frozen=True)
class Trees:
    """All worktrees of this machine."""

    root: Path

    def opened(self, order: WorktreeOrder, workspace: str) -> Tree:
        """The worktree of a call, made if it is not there. May block. Raises ToolError; nothing was changed then."""
        with self.held(folder := self._folder(order, workspace)):
            if (tree := read(folder)) is not None:
                tree.check()
                return caught_up(tree)
            return _made(folder, order, workspace)

    def committed(self, tree: Tree, order: WorktreeOrder) -> WorktreeNote:
        """Commit what has changed in a worktree to its branch, as the commit of a step. May block. Raises ToolError."""
        with self.held(tree.folder):
            tree = caught_up(read(tree.folder) or tree)
            tree.check()
            record = _committed(tree, order)
            if record != tree.record:
                write_record(tree.folder, record)
            return WorktreeNote(branch=short(record.branch), commit=record.tip, base=record.base)

    def all(self) -> Iterator[Tree]:
        """All that are there."""
        for folder in sorted(self.root.glob("[!.]*/[!.]*")):
            if (tree := read(folder)) is not None:
                yield tree

    def of_step(self, plan: str, step: str) -> Iterator[Tree]:
        """Those of a plan, of the step, of its items, or that it is inside of."""
        for tree in self.all():
            name = tree.record.tree
            if tree.record.plan == plan and (name == step or name.startswith(f"{step}[") or _is_in(step, name)):
                yield tree

    def named(self, plan: str, step: str, caller: str) -> list[Tree]:
        """As `of_step`, of a name that the step `caller` gives: the next one of that name, as in references."""
        for outer in around(caller):
            name = f"{outer}.{step}"
            if own := [each for each in self.of_step(plan, name) if not _is_in(name, each.record.tree)]:
                return own
        return list(self.of_step(plan, step))

    def remove(self, tree: Tree) -> None:
        """Remove the files of a worktree, and with the last one of a plan those of its merges; its branch stays.

        May block.
        """
        with self.held(tree.folder):
            (tree.folder / RECORD).unlink(missing_ok=True)
            _emptied(tree.folder)
        if not any(tree.folder.parent.glob(f"*/{RECORD}")):
            for merge in tree.folder.parent.glob("merge-*"):
                shutil.rmtree(merge)
        with suppress(OSError):
            tree.folder.rmdir()
            tree.folder.parent.rmdir()

    def _folder(self, order: WorktreeOrder, workspace: str) -> Path:
        place = xxhash.xxh3_64_hexdigest(os.fsencode(workspace))[:8]
        return self.root / slug(order.plan) / f"{slug(order.tree)}-{place}"

    def folder_of_merge(self, plan: str, key: str) -> Path:
        """Where a merge is prepared; `key`: of its call."""
        return self.root / slug(plan) / f"merge-{xxhash.xxh3_64_hexdigest(key.encode())}"

    @contextmanager
    def held(self, folder: Path) -> Iterator[None]:
        """Make a folder in the directory of all worktrees, and hold its lock. Raises ToolError FILE_BUSY."""
        locks = self.root / ".locks"
        locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_own(self.root)
        try:
            lock = locks / f"{xxhash.xxh3_64_intdigest(os.fsencode(folder)) % LOCKS:02x}"
            with wait.locked(lock, LOCK_SECONDS) as held:
                before = HELD.set((held,))
                try:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    yield
                finally:
                    HELD.reset(before)
        except TimeoutError:
            text = f"the worktree {line(str(folder))} is still changed by another step"
            raise ToolError("FILE_BUSY", f"{text}; try again later", retryable=True) from None


def branch_of(plan: str, tree: str) -> str:
    """The full name of the branch of a worktree."""
    return f"refs/heads/plans/{slug(plan)}/{slug(tree)}"


def short(branch: str) -> str:
    """The name of a branch as people type it."""
    return branch.removeprefix("refs/heads/")


def _is_in(step: str, name: str) -> bool:
    return step.startswith((f"{name}.", f"{name}["))


def _check_own(root: Path) -> None:
    """Raise ToolError if others could change the worktrees."""
    status = root.lstat()
    if status.st_uid != os.geteuid() or root.is_symlink():
        text = f"{line(str(root))} is a link or belongs to another user; choose another PLANS_WORKTREES"
        raise ToolError(REFUSED, text)
    if status.st_mode & 0o077:
        root.chmod(0o700)


def read(folder: Path) -> Tree | None:
    """The worktree that is in a folder; None: there is none. Raises ToolError WORKTREE_FAILED."""
    try:
        return Tree(folder, Record.model_validate_json((folder / RECORD).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        text = f"the record of the worktree {line(str(folder))} cannot be read ({type(error).__name__})"
        raise ToolError("WORKTREE_FAILED", f"{text}; remove the folder, and run the step again") from None


def write_record(folder: Path, record: Record) -> None:
    """Keep what is known of a worktree. Under its lock."""
    write_whole(folder / RECORD, record.model_dump_json().encode())


def _emptied(folder: Path) -> None:
    for name in ("tree", "git"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)


def _made(folder: Path, order: WorktreeOrder, workspace: str) -> Tree:
    """A new worktree. The person's repository changes last: it gets a branch."""
    repository, branch = Repository.of(workspace), branch_of(order.plan, order.tree)
    into, base = repository.head()
    repository.check_content(base)
    _check_free(repository, branch, order)
    _emptied(folder)
    try:
        files, own = folder / "tree", folder / "git"
        files.mkdir(mode=0o700)
        init(own, repository, branch)
        git = Git(str(own), repository.objects, str(files))
        git.run("update-ref", branch, base)
        repository.check_clean(git)
        git.run("read-tree", base)
        git.run("checkout-index", "--all", "--force", "--quiet", "--index")
        (files / ".git").write_text(f"gitdir: {own}\n")
        record = Record(
            plan=order.plan, tree=order.tree, workspace=workspace, branch=branch, into=into, base=base, tip=base,
            directory=identity_of(str(files)),
        )  # fmt: skip
        write_record(folder, record)
        return Tree(folder, record).settled(repository)
    except BaseException:
        (folder / RECORD).unlink(missing_ok=True)
        _emptied(folder)
        raise


def _check_free(repository: Repository, branch: str, order: WorktreeOrder) -> None:
    """Raise ToolError if the repository cannot get this branch."""
    if repository.tip("refs/heads/plans") is not None:
        raise ToolError(
            REFUSED,
            f"{line(repository.workspace)} has a branch called 'plans', so none can be called"
            f" {short(branch)}; rename it: git branch -m plans NAME",
        )
    if repository.tip(branch) is not None:
        raise ToolError(
            MOVED,
            f"the branch {short(branch)} is there, but the worktree of step '{line(order.tree)}' is not:"
            f" it was removed, or is elsewhere; rename the branch, or delete it: git branch -D {short(branch)}",
        )


def init(own: Path, repository: Repository, branch: str) -> None:
    """Make a git directory of our own with the repository's objects, whose HEAD is this branch.

    Its configuration is ours, and names no program.
    """
    for name in ("objects/info", "refs/heads", "info"):
        (own / name).mkdir(mode=0o700, parents=True)
    settings, is_plain = repository.settings(), repository.format() == "sha1"
    rows = ["[core]", f"repositoryformatversion = {0 if is_plain else 1}", "bare = false", "hooksPath = /dev/null"]
    rows += _rows(settings, "core.")
    rows += [] if is_plain else ["[extensions]", f"objectFormat = {repository.format()}"]
    rows += ["[user]", *_rows(settings, "user.")]
    (own / "config").write_text("".join(f"{row}\n" for row in rows))
    (own / "HEAD").write_text(f"ref: {branch}\n")
    (own / "objects/info/alternates").write_text(f"{repository.objects}\n")
    with suppress(OSError):  # what people do not want to commit, in no commit of ours either
        shutil.copyfile(f"{repository.common}/info/exclude", own / "info" / "exclude")


def _rows(settings: Mapping[str, str], section: str) -> list[str]:
    found = {name.removeprefix(section): value for name, value in settings.items() if name.startswith(section)}
    return [f"{name} = {_quoted(value)}" for name, value in found.items()]


def _quoted(value: str) -> str:
    text = "".join(" " if ord(each) < 32 else each for each in value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _committed(tree: Tree, order: WorktreeOrder) -> Record:
    repository = Repository.of(tree.record.workspace)
    _unlock(tree)
    record = tree.settled(repository).record
    content = staged(tree, repository)
    git = tree.git(repository)
    if content == git.text("rev-parse", f"{record.tip}^{{tree}}"):
        return record
    # What a step changes in several calls is one commit: of an agent, of a step that is tried again.
    is_more = (record.last == order.step or record.is_open) and record.tip != record.base
    parent = git.text("rev-parse", f"{record.tip}^") if is_more else record.tip
    new = commit_of(git, content, parent, order.title, order.plan, order.step, repository)
    write_record(tree.folder, record.model_copy(update={"next": (new, order.step)}))
    git.run("update-ref", record.branch, new)
    repository.move(record.branch, new, record.tip, f"plan {order.plan}: step {order.step}")
    return record.model_copy(update={"tip": new, "last": order.step, "next": None, "is_open": False})


def _unlock(tree: Tree) -> None:
    for left in Path(tree.git_directory).rglob("*.lock"):  # of a git that was killed: we hold the only lock that counts
        left.unlink()


def caught_up(tree: Tree) -> Tree:
    """A worktree whose files have followed its branch. Under its lock."""
    if not tree.record.is_behind:
        return tree
    repository = Repository.of(tree.record.workspace)
    _unlock(tree)
    record = tree.settled(repository).record
    tree.git(repository).run("read-tree", "--reset", "-u", record.tip)
    record = record.model_copy(update={"is_behind": False})
    write_record(tree.folder, record)
    return Tree(tree.folder, record)


def staged(tree: Tree, repository: Repository) -> str:
    """The files of a worktree as a tree object. In an index of its own until it is known to be good.

    Raises ToolError WORKTREE_NESTED if a step has made a repository inside: a commit would only have its name.
    """
    index = Path(tree.git_directory, "index.new")
    shutil.copyfile(Path(tree.git_directory, "index"), index)
    git = Git(tree.git_directory, repository.objects, tree.path, str(index))
    try:
        git.run("add", "--all", ".")
        rows = git.run("ls-files", "--stage", "-z").split(b"\0")
        if nested := [row.partition(b"\t")[2] for row in rows if row.startswith(b"160000")]:
            raise _nested(tree, os.fsdecode(nested[0]))
        content = git.text("write-tree")
    except GitFailed as failure:
        if "does not have a commit checked out" in failure.message:
            raise _nested(tree, "a directory with .git in it") from None
        raise
    except BaseException:
        index.unlink(missing_ok=True)
        raise
    index.replace(Path(tree.git_directory, "index"))
    return content


def _nested(tree: Tree, where: str) -> ToolError:
    text = f"the step has made a repository in its worktree, {line(where)}, and its files would be in no commit"
    return ToolError(NESTED, f"{text}; have it clone elsewhere, or name it in .gitignore ({line(tree.path)})")


def commit_of(
    git: Git, content: str, parent: str, title: str, plan: str, step: str, repository: Repository, *more: str
) -> str:  # fmt: skip
    """A commit of this tree object, with the plan and step as trailers. `more`: further parents."""
    text = f"{title or step}\n\nPlan: {line(plan)}\nStep: {line(step)}\n"
    parents = [part for each in (parent, *more) for part in ("-p", each)]
    as_person = replace(git, person=repository.person())
    return as_person.text("commit-tree", content, *parents, given=text.encode())

"""The git repository of a workspace: whether worktrees can be made of it, and what of it they need.

All of it is looked at before anything is changed. What it says about itself is not believed: a `.git` that leads
elsewhere, or a link in its place or inside, would have us write outside the workspace.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plansurvive.features.worktrees.git import REFUSED, Git, GitFailed
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.safe_text import line

DIRTY = "WORKTREE_DIRTY"
_OF_BARE = ("HEAD", "objects", "refs")
_FILTER = re.compile(rb"(?m)^[ \t]*[^#\s][^\n]*?[ \t]filter=([^\s]+)")
_COPIED = frozenset(("core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase"))
"""Settings of a repository that say what its files look like; they name no program."""
_PERSON = frozenset(("user.name", "user.email"))
MAX_SHOWN = 5


@dataclass(frozen=True)
class Repository:
    """The repository at the top of a workspace."""

    workspace: str
    directory: str
    """Its git directory: `.git`, or where a linked worktree has its own."""
    common: str
    """The directory with its references and objects."""

    @classmethod
    def of(cls, workspace: str) -> Repository:
        """That of a workspace. Raises ToolError WORKTREE_REFUSED with what is wrong, and what to do."""
        place = Path(workspace, ".git")
        try:
            status = place.lstat()
        except FileNotFoundError:
            raise _refused(workspace, _none(workspace)) from None
        if stat.S_ISLNK(status.st_mode):
            raise _refused(workspace, "has a link in place of .git; put the directory itself there")
        if stat.S_ISDIR(status.st_mode):
            found = cls(workspace, str(place), str(place))
        else:
            found = cls(workspace, *_linked(workspace, place))
        for linked in _links(found):
            raise _refused(workspace, f"has a link in its git directory, {line(linked)}; put what it leads to there")
        return found

    @property
    def objects(self) -> str:
        """Where its objects are."""
        return f"{self.common}/objects"

    @property
    def references(self) -> Git:
        """Git with the repository itself, for its references."""
        return Git(self.directory)

    def branch(self) -> str:
        """The full name of the branch that is checked out. Raises ToolError WORKTREE_REFUSED if none is."""
        try:
            return self.references.text("symbolic-ref", "--quiet", "HEAD")
        except GitFailed:
            text = "has no branch checked out (detached HEAD); check one out: git switch BRANCH"
            raise _refused(self.workspace, text) from None

    def tip(self, reference: str) -> str | None:
        """The commit that a reference names; None if there is no such reference."""
        with suppress(GitFailed):
            return self.references.text("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
        return None

    def move(self, reference: str, new: str, old: str, why: str) -> None:
        """Set a reference that is at `old`; an `old` of zeros: that does not exist. Raises GitFailed if it is not."""
        self.references.run("update-ref", "--create-reflog", "-m", why, reference, new, old)

    def head(self) -> tuple[str, str]:
        """The branch that is checked out, and its commit. Raises ToolError WORKTREE_REFUSED."""
        branch = self.branch()
        if (tip := self.tip(branch)) is None:
            raise _refused(self.workspace, "has no commit yet; make the first one")
        return branch, tip

    def settings(self) -> dict[str, str]:
        """Those of its settings that its worktrees need as well, or that name the person whose it is."""
        with suppress(GitFailed):
            rows = Git(self.directory).text("config", "--local", "--no-includes", "--null", "--list").split("\0")
            pairs = [row.partition("\n") for row in rows]
            return {name: value for name, _, value in pairs if name in _COPIED or name in _PERSON}
        return {}

    def person(self) -> dict[str, str]:
        """Whose commits ours are, as variables of git: the person whom the repository's settings name."""
        found = self.settings()
        who = {"NAME": found.get("user.name", "plan"), "EMAIL": found.get("user.email", "plan@localhost")}
        return {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}

    def check_reference(self, reference: str) -> None:
        """Raise ToolError WORKTREE_REFUSED for a name that no branch can have, or one that a link leads elsewhere."""
        try:
            self.references.run("check-ref-format", reference)
        except GitFailed:
            text = f"can have no branch called '{line(reference.removeprefix('refs/heads/'))}'; name one: git branch"
            raise _refused(self.workspace, text) from None
        parts = reference.split("/")
        for top in (self.common, f"{self.common}/logs"):
            for length in range(1, len(parts) + 1):
                if Path(top, *parts[:length]).is_symlink():
                    text = f"has a link in its git directory, {line(reference)}; put what it leads to there"
                    raise _refused(self.workspace, text)

    def format(self) -> str:
        """The hash that its objects are named by: `sha1` or `sha256`."""
        return self.references.text("rev-parse", "--show-object-format")

    def check_content(self, commit: str) -> None:
        """Raise ToolError WORKTREE_REFUSED if the commit has what a worktree would not be whole with."""
        attributes = []
        rows = self._reading().run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        for meta, _, path in (row.partition(b"\t") for row in rows):
            if meta.startswith(b"160000"):
                text = f"has submodules ({line(os.fsdecode(path))}), which a worktree would be without"
                raise _refused(self.workspace, f"{text}; take `worktree` out, or make a repository without them")
            if path.rpartition(b"/")[2] == b".gitattributes":
                attributes.append(meta.split(b" ")[2].decode())
        texts = [self._reading().run("cat-file", "blob", each) for each in attributes]
        with suppress(OSError):
            texts.append(Path(self.common, "info", "attributes").read_bytes())
        for found in (match for text in texts if (match := _FILTER.search(text))):
            name = line(found[1].decode(errors="replace"))
            kind = "has files in Git LFS" if name == "lfs" else f"has files that go through the filter '{name}'"
            raise _refused(self.workspace, f"{kind}, a program which we do not run; take `worktree` out")

    def check_clean(self, git: Git) -> None:
        """Raise ToolError WORKTREE_DIRTY if a tracked file differs from the commit at `git`'s HEAD, or is staged."""
        found = _dirty(git, self)
        if found:
            more = f" and {len(found) - MAX_SHOWN:,} more" if len(found) > MAX_SHOWN else ""
            names = ", ".join(line(each) for each in found[:MAX_SHOWN])
            text = f"{line(self.workspace)} has changes that are not committed: {names}{more}"
            raise ToolError(DIRTY, f"{text}; commit them, or put them aside with git stash")

    def _reading(self) -> Git:
        """Git that reads objects, without the repository's own configuration."""
        return Git(self.directory)


def _dirty(git: Git, repository: Repository) -> list[str]:
    """Tracked files of the workspace that differ from the commit or the index."""
    here = Git(git.directory, repository.objects, repository.workspace, f"{repository.directory}/index")
    options = ("--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
    rows = here.run("status", *options).split(b"\0")
    return [os.fsdecode(row[3:]) for row in rows if row]


def _none(workspace: str) -> str:
    with suppress(OSError):
        if set(_OF_BARE) <= {each.name for each in Path(workspace).iterdir()}:
            return "is a bare repository, without files; make its clone the workspace: git clone"
    for above in Path(workspace).parents:
        if Path(above, ".git").exists():
            return f"is inside the repository {line(str(above))}; make its top the workspace"
    return "is not a git repository; make it one: git init, and a first commit"


def _linked(workspace: str, place: Path) -> tuple[str, str]:
    """The git directory of a linked worktree, and the common one. Raises ToolError WORKTREE_REFUSED for others.

    Both must say so: a file `.git` alone could name any repository.
    """
    with suppress(OSError, ValueError):
        word, _, where = place.read_text("utf-8", "surrogateescape").partition(":")
        own = Path(workspace, where.strip()).resolve()
        back = Path(own, (own / "gitdir").read_text("utf-8", "surrogateescape").strip()).resolve()
        common = Path(own, (own / "commondir").read_text("utf-8", "surrogateescape").strip()).resolve()
        if word == "gitdir" and back == place.resolve() and own.parent == common / "worktrees":
            return str(own), str(common)
    text = "has a file .git that is not that of a linked worktree (a submodule?); use the repository itself"
    raise _refused(workspace, text)


def _links(repository: Repository) -> Iterator[str]:
    """Links in the git directory at places where we write."""
    common = repository.common
    places = [
        "",
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "refs/heads",
        "logs",
        "logs/refs",
        "logs/refs/heads",
    ]
    places += [f"objects/{number:02x}" for number in range(256)]
    places += ["packed-refs", "HEAD", "config", "refs/heads/plans", "logs/refs/heads/plans"]
    for place in places:
        if Path(common, place).is_symlink():
            yield place or ".git"
    for top in ("refs/heads/plans", "logs/refs/heads/plans"):
        for folder, folders, files in os.walk(f"{common}/{top}"):
            names = [f"{folder}/{name}" for name in (*folders, *files)]
            yield from (os.path.relpath(name, common) for name in names if Path(name).is_symlink())


def _refused(workspace: str, what: str) -> ToolError:
    return ToolError(REFUSED, f"{line(workspace)} {what}")

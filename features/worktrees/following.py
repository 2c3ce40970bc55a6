"""Has the files of a workspace follow its branch to another commit: all of them, or none.

Done by ourselves, as `git read-tree -u` that is killed leaves files half changed and a lock that could be anybody's.
The order: the index is locked, by a hard link to the index that is to be, so that what is left of a killed worker is
known to be ours; every file is made in the git directory and put in its place by a rename; the branch is moved; the
new index takes the place of the old one, which ends the lock. The same call finishes what a killed one has begun.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from plansurvive.features.worktrees.git import Git, GitFailed
from plansurvive.features.worktrees.repository import DIRTY, Repository
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.safe_text import line

MAX_SHOWN = 5
_NONE = "000000"
"""The mode of a file that is not there."""


class _Change(NamedTuple):
    """A file that differs between two commits."""

    path: str
    was: str
    """Its object before; empty: it is new."""
    now: str
    """Its object afterwards; empty: it is deleted."""


class Following:
    """The files of a workspace on their way from one commit to another."""

    def __init__(self, repository: Repository, own: Git, key: str, old: str, new: str) -> None:
        """`own`: a git directory of ours; `key` names what is done, in the names of files."""
        self._repository, self._old, self._new = repository, old, new
        self._top, self._folder = Path(repository.workspace), Path(repository.directory, f"plans-{key}")
        self._lock, self._index = (Path(repository.directory, name) for name in ("index.lock", "index"))
        self._next = self._folder / "index"
        self._git = Git(own.directory, repository.objects, repository.workspace)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Change the files; then the branch is moved, inside; then the index follows.

        Raises ToolError, and everything is as it was: WORKTREE_DIRTY, or FILE_BUSY while another git is at work.
        """
        begun = self.is_begun
        if not begun:
            self._lock_index()
        changes, before = list(self._changes()), frozenset[str]()
        try:
            if not begun:
                self._refuse_others(changes, begun=False)
                before = frozenset(each.path for each in changes if not each.was and self._state(each.path))
        except BaseException:
            self._unlock()
            raise
        try:
            if begun:
                self._refuse_others(changes, begun=True)
            # Of one that was begun, it is not known where it had got to.
            self._put([each for each in changes if not begun or self._state(each.path) != each.now], self._new)
            yield
        except BaseException:
            self.undo([each for each in changes if each.path not in before])
            raise
        self.finish()

    @property
    def is_begun(self) -> bool:
        """Whether a worker was killed while it did this."""
        with suppress(OSError):
            return self._next.samefile(self._lock)
        return False

    def finish(self) -> None:
        """End the lock with the new index, if it is still there; the branch has been moved."""
        if self.is_begun:
            self._lock.replace(self._index)
        self._clear()

    def undo(self, changes: list[_Change] | None = None) -> None:
        """Put back what has been changed, as far as it is as we left it, and end the lock."""
        if not self.is_begun:
            return
        found = list(self._changes()) if changes is None else changes
        ours = [each for each in found if self._state(each.path) == each.now]
        self._put([_Change(each.path, each.now, each.was) for each in ours], self._old)
        self._unlock()

    def _unlock(self) -> None:
        self._lock.unlink()
        self._clear()

    def _lock_index(self) -> None:
        self._clear()
        self._folder.mkdir(mode=0o700)
        try:
            shutil.copyfile(self._index, self._next)
            replace(self._git, index=str(self._next)).run("read-tree", "-i", "-m", self._old, self._new)
            os.link(self._next, self._lock)
        except FileExistsError:
            self._clear()
            text = f"another git is at work in {line(str(self._top))}, or was killed there"
            text = f"{text}; if none is, remove {line(str(self._lock))}"
            raise ToolError("FILE_BUSY", text, retryable=True) from None
        except GitFailed as failure:
            self._clear()
            raise _dirty(self._top, [failure.said]) from None
        except BaseException:
            self._clear()
            raise

    def _clear(self) -> None:
        if self._folder.is_symlink():
            self._folder.unlink()
        elif self._folder.exists():
            shutil.rmtree(self._folder)

    def _changes(self) -> Iterator[_Change]:
        rows = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", self._old, self._new).split(b"\0")
        for meta, path in zip(rows[::2], rows[1::2], strict=False):
            before, after, was, now, _ = meta.decode().lstrip(":").split(" ")
            yield _Change(os.fsdecode(path), was if before != _NONE else "", now if after != _NONE else "")

    def _refuse_others(self, changes: list[_Change], *, begun: bool) -> None:
        """Raise ToolError WORKTREE_DIRTY if a file is neither as it was nor as it will be: somebody works on it."""
        looked = changes if begun else [each for each in changes if not each.was]  # the others have been compared
        odd = [each.path for each in looked if self._state(each.path) not in (each.was, each.now)]
        going = [each.path for each in changes if not each.now]
        odd = [path for path in odd if not any(each.startswith(f"{path}/") for each in going)]  # a directory that goes
        odd += [each.path for each in changes if any(above.is_symlink() for above in self._above(each.path))]
        if odd:
            raise _dirty(self._top, list(dict.fromkeys(odd)))

    def _above(self, path: str) -> Iterator[Path]:
        """The directories between the workspace and a file."""
        for above in Path(path).parents:
            if above != Path():
                yield self._top / above

    def _state(self, path: str) -> str:
        """The object that a file would be now; empty: there is none; `?`: it is no file."""
        place = self._top / path
        try:
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                return self._git.text("hash-object", "--stdin", given=os.fsencode(place.readlink()))
            if not stat.S_ISREG(mode):
                return "?"
            return self._git.text("hash-object", f"--path={path}", "--stdin", given=place.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError:
            return "?"

    def _put(self, changes: list[_Change], commit: str) -> None:
        """Put files into the state that the commit has them in; those that may be in the way of others go first.

        Raises ToolError WORKTREE_DIRTY.
        """
        made = self._folder / "files"
        if made.exists():
            shutil.rmtree(made)
        made.mkdir()
        git = replace(self._git, index=str(self._folder / "index.of"))
        git.run("read-tree", commit)
        names = b"".join(os.fsencode(each.path) + b"\0" for each in changes if each.now)
        git.run("checkout-index", "-f", "-z", "--stdin", f"--prefix={made}/", given=names)
        for each in (one for one in changes if not one.now):
            with suppress(FileNotFoundError, NotADirectoryError):
                (self._top / each.path).unlink()
            with suppress(OSError):
                for above in self._above(each.path):
                    above.rmdir()
        for each in (one for one in changes if one.now):
            try:
                (self._top / each.path).parent.mkdir(parents=True, exist_ok=True)
                _moved(made / each.path, self._top / each.path)
            except OSError as error:
                raise _dirty(self._top, [f"{each.path} ({error.strerror})"]) from None


def _moved(made: Path, place: Path) -> None:
    """Put a file in its place by a rename."""
    try:
        made.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = place.with_name(f".{made.name[:100]}.plans-new")  # the git directory is in another file system
        shutil.copy2(made, beside, follow_symlinks=False)
        beside.replace(place)


def _dirty(top: Path, names: list[str]) -> ToolError:
    more = f" and {len(names) - MAX_SHOWN:,} more" if len(names) > MAX_SHOWN else ""
    found = ", ".join(line(each) for each in names[:MAX_SHOWN])
    text = f"the files of {line(str(top))} could not follow, and nothing was changed: in the way is {found}{more}"
    return ToolError(DIRTY, f"{text}; move it away, or commit it, and run the step again")

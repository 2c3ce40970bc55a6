"""Which directories may be workspaces: the rules of a worker. A plan cannot change them, and the client only partly.

Never, whatever the settings: the root, a home or a directory that contains one, directories of the system, of
credentials and of programs in a home, our state directory, our code and the interpreter's, or a directory that contains
code. Besides, a workspace must be at or below one of PLANS_WORKSPACES; without that setting, below the home of the
worker's user (hidden directories excepted), or at or below a directory that the person who starts the plan grants.
PLANS_WORKSPACE is always allowed. Paths are compared as real paths and by inode, so that links, bind mounts and other
spellings make no difference.

A directory with the program's own code is refused, as a plan could change what runs outside the sandbox at the next
start; binding it read-only would protect it at level 2 only.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames
from plansurvive.plans.files.protected_names import CATEGORIES
from plansurvive.runtime.base.code_place import CODE
from plansurvive.runtime.settings import Settings

REFUSED = "WORKSPACE_REFUSED"
_CODE = ("plans", "activities", "workflows", "runtime", "client", "features", "apps", "worker.py", "plansurvive")
_SYSTEM = (
    *("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/efi", "/dev", "/proc", "/sys"),
    *("/run", "/var/run", "/var/lib", "/var/spool", "/var/cache", "/var/log", "/var/mail", "/var/backups", "/var/db"),
    *("/nix", "/gnu", "/snap", "/System", "/Library", "/Applications", "/private/etc", "/private/var/db"),
)
"""Refused with everything below them."""
_SHARED = (
    *("/", "/var", "/home", "/tmp", "/opt", "/srv", "/mnt", "/media", "/Users", "/Volumes", "/private"),  # noqa: S108
    *("/private/var", "/private/tmp", "/private/var/tmp", "/var/tmp"),  # noqa: S108
)
"""Refused themselves: they hold the directories of many."""
_ELSEWHERE = "`pipx install plansurvive` and `uv tool install plansurvive` install it elsewhere"
_SERVICES = "/var/lib"
"""Where service users have their homes: their own home is not a directory of the system."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_IN_A_HOME = (
    *(".local/bin", ".local/lib", ".local/state", ".local/share/applications", ".local/share/keyrings", ".mozilla"),
    *(".local/share/systemd", ".thunderbird", ".password-store", ".pki", ".cargo", ".rustup", ".npm", ".m2", ".gem"),
    *(".terraform.d", ".oci", ".gcloud", ".pyenv", ".rbenv", ".nvm", ".asdf", ".var", "bin", "snap", "Library"),
)
"""Refused with everything below them, in every home; besides the strictly protected names."""

_KIND = stat.S_IFMT(0o777777)
"""The bits of a mode that say what kind of file it is."""
MAX_ANSWERS = 1_000
"""Answers about directories that a worker keeps."""
Identity = tuple[int, int]


@dataclass(frozen=True)
class WorkspaceRules:
    """The rules of one worker."""

    listed: tuple[str, ...] = ()
    """PLANS_WORKSPACES."""
    own: str = ""
    """PLANS_WORKSPACE."""
    state: str = ""
    """The state directory."""
    names: ProtectedNames = DEFAULT
    home: str = ""
    """The home of the worker's user; empty: HOME."""

    @classmethod
    def of(cls, settings: Settings) -> WorkspaceRules:
        """The rules that the settings ask for."""
        own = str(settings.workspace or "")
        return cls(settings.workspaces, own, str(settings.state_dir), ProtectedNames(settings.protected))

    def refusal(self, path: str, granted: Sequence[str] = ()) -> str:
        """Why a plan may not work in a directory; empty if it may. `granted`: by the person who starts the plan."""
        real = _real(path)
        if not real:
            return _unreadable(path)
        given = [each for each in granted if each.startswith("/") and _real(each) not in ("", "/")]
        return self._never(real) or self._not_allowed(real, [*self._always, *([] if self.listed else given)])

    def check_recorded(self, path: str) -> None:
        """Raise ToolError WORKSPACE_REFUSED for a workspace that was allowed when its plan was checked and is not now.

        What a person granted is not known any more; but a path that leads elsewhere by now must be allowed anew. Every
        step asks, nearly always about the directory of the step before: where the path leads through the same
        directories and no link, the answer is the same.
        """
        through = () if self.listed else _without_links(path)
        if not through or self._passed.get(path) != through:
            self._check_anew(path)
            if len(self._passed) >= MAX_ANSWERS:
                self._passed.clear()
            self._passed[path] = through

    def _check_anew(self, path: str) -> None:
        real = _real(path)
        problem = self._never(real) if real else _unreadable(path)
        if not problem and (self.listed or real != os.path.normpath(path)):
            problem = self._not_allowed(real, self._always)
        if problem:
            raise ToolError(REFUSED, problem)

    @cached_property
    def closed(self) -> frozenset[Identity]:
        """The directories that no file tool enters, even where a workspace contains them."""
        return frozenset(_identities([self.state] if self.state else []))

    def _not_allowed(self, real: str, allowed: Sequence[str]) -> str:
        if any(_is_at_or_below(real, os.path.realpath(each)) for each in allowed if each):
            return ""
        if not self.listed and _is_below(real, self._home) and not real[len(self._home) + 1 :].startswith("."):
            return ""
        if self.listed:
            places = ", ".join(shown(each) for each in self.listed)
            return (
                f"the workspace {shown(real)} is not below PLANS_WORKSPACES of the worker ({places});"
                " use one that is, or add it there"
            )
        return (
            f"the workspace {shown(real)} is neither in the home directory {shown(self._home)} nor below the directory"
            " of the plan file; name it with --workspace when you start the plan, or in PLANS_WORKSPACES of the worker"
        )

    @cached_property
    def _passed(self) -> dict[str, tuple[Identity, ...]]:
        """What was allowed, and the directories that each path led through."""
        return {}

    @cached_property
    def _answers(self) -> dict[tuple[str, tuple[Identity, ...]], str]:
        return {}

    @property
    def _always(self) -> list[str]:
        return [*self.listed, *([self.own] if self.own else [])]

    @cached_property
    def _home(self) -> str:
        home = os.path.realpath(self.home or Path.home())
        return "" if home in _SHARED else home

    @cached_property
    def _homes(self) -> frozenset[str]:
        """The home directories on this machine."""
        found = {user.pw_dir for user in pwd.getpwall()} | {self._home, "/root"}
        with suppress(OSError):
            found |= {entry.path for entry in os.scandir("/home")}
        return frozenset(os.path.realpath(each) for each in found if each.startswith("/") and Path(each).is_dir())

    @cached_property
    def _code(self) -> tuple[str, ...]:
        interpreter = [os.path.realpath(each) for each in (sys.prefix, sys.base_prefix)]
        return (*(str(CODE / each) for each in _CODE), *interpreter)

    @cached_property
    def _hidden(self) -> frozenset[str]:
        return frozenset(f"{home}/{each}" for home in self._homes for each in _IN_A_HOME)

    @cached_property
    def _above_homes(self) -> frozenset[str]:
        return frozenset(_with_parents(self._homes))

    @cached_property
    def _ids(self) -> _Identities:
        return _Identities(
            trees=frozenset(_identities([*_SYSTEM, self.state, *self._code])),
            places=frozenset(_identities([*_SHARED, *self._above_homes, *_with_parents(self._code)])),
        )

    def _never(self, real: str) -> str:
        """Why the directory is never a workspace; empty if it may be one.

        Every step asks. The answer depends on the path and on which directories it leads through, and is kept for both.
        """
        above = [*_with_parents([real])]
        key = (real, tuple(_identities(above)))
        if key not in self._answers:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            self._answers[key] = self._refused(real, above)
        return self._answers[key]

    def _refused(self, real: str, above: Sequence[str]) -> str:
        what = self._what(real, above) or self._what_by_identity(real, above)
        way = "name another directory with --workspace, or in the plan's `workspace`"
        return f"the workspace {shown(real)} is {what}, which is never a workspace; {way}" if what else ""

    def _what(self, real: str, above: Sequence[str]) -> str:
        if real in _SHARED:
            return "a directory that holds those of many"
        if self.state and _is_at_or_below(real, os.path.realpath(self.state)):
            return "the state directory of this program (PLANS_STATE_DIR)"
        if any(_is_at_or_below(real, each) for each in self._code):
            return "the code of this program or of its interpreter"
        if inside := [each for each in self._code if _is_below(each, real)]:
            return f"a directory that contains this program, in {shown(min(inside, key=len))} ({_ELSEWHERE})"
        if not self._is_excepted(real) and any(each in _SYSTEM for each in above):
            return "a directory of the system"
        if real in self._above_homes:
            return "a home directory, or contains one"
        if any(each in self._hidden for each in above):
            return "a directory of programs or keys in a home"
        found = self.names.reason([name for name in real.split("/") if name], is_folder=True)
        return f"a protected directory ({found.title})" if found and found.strict and found in CATEGORIES else ""

    def _what_by_identity(self, real: str, above: Sequence[str]) -> str:
        if self._is_excepted(real):
            return ""
        if any(each in self._ids.trees for each in _identities(above)):
            return "a directory of the system or of this program, under another name"
        if any(each in self._ids.places for each in _identities([real])):
            return "a directory that holds those of many, under another name"
        return ""

    def _is_excepted(self, real: str) -> bool:
        """Whether a directory below one of the system may be a workspace nevertheless."""
        return _is_below(real, _SHARED_MEMORY) or (_is_below(self._home, _SERVICES) and _is_below(real, self._home))


@dataclass(frozen=True)
class _Identities:
    """Device and inode of directories that are refused, with everything below them (`trees`) or themselves."""

    trees: frozenset[Identity]
    places: frozenset[Identity]


def _real(path: str) -> str:
    """The real path; empty if a part of it is a link that may not be read, or it cannot be a path."""
    with suppress(OSError, ValueError):
        return os.path.realpath(path)
    return ""


def _unreadable(path: str) -> str:
    return f"the workspace {shown(path)} leads through a link that cannot be read; name the directory itself"


def _identities(paths: Iterable[str]) -> Iterator[Identity]:
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)  # noqa: PTH116 - several at every step, and a Path costs more than the call
            yield status.st_dev, status.st_ino


def _without_links(path: str) -> tuple[Identity, ...]:
    """The directories that a path leads through, itself first; empty if it is not plain, or a part of it is a link."""
    found = []
    if not path.startswith("/") or os.path.normpath(path) != path:
        return ()
    with suppress(OSError, ValueError):
        each = path
        while True:
            status = os.lstat(each)  # several at every step: no generator, and the mode is compared as it is
            if status.st_mode & _KIND != stat.S_IFDIR:
                return ()
            found.append((status.st_dev, status.st_ino))
            if len(each) <= 1:
                return tuple(found)
            each = each.rpartition("/")[0] or "/"
    return ()


def _with_parents(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield path
        while len(path) > 1:
            path = path.rpartition("/")[0] or "/"
            yield path


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(folder.rstrip("/") + "/")


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or _is_below(path, folder)

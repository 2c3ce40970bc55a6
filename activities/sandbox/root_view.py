"""The part of the host's file system that commands may see, as an allow-list: levels 1 and 2.

Visible are the system directories, the Python of the worker, the directories on PATH, programs that known tools install
in a home, and PLANS_SANDBOX_READ. Within them, homes, the worker's state directory and key files are hidden again. A
home, or a directory that contains one, is never taken from PATH.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"),
    *("/home/linuxbrew/.linuxbrew", "/var/lib/dpkg", "/var/lib/gems", "/var/lib/texmf", "/sys/devices/system/cpu"),
)
"""System directories: programs, libraries and their configuration. Not /var, /run, /srv, /mnt, /sys or /boot."""
_KEYS = ("etc/shadow*", "etc/gshadow*", "etc/sudoers*", "etc/ssh/ssh_host_*_key", "etc/ssl/private")
_VERSIONS = ("bin", "libexec", "plugins", "shims", "version", "versions")
_TOOLS_AT_HOME = {
    **dict.fromkeys((".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv"), _VERSIONS),
    ".asdf": ("bin", "installs", "lib", "libexec", "plugins", "shims"),
    ".nvm": ("versions",),
    ".volta": ("bin", "tools"),
    ".fnm": ("node-versions",),
    ".bun": ("bin",),
    ".deno": ("bin",),
    ".rustup": ("settings.toml", "toolchains"),
    ".cargo": ("bin",),
    ".sdkman": ("candidates",),
    ".ghcup": ("bin", "ghc"),
    ".dotnet": ("dotnet", "host", "sdk", "shared", "tools"),
    ".nix-profile": ("bin", "lib"),
    "go": ("bin",),
    **dict.fromkeys(("miniconda3", "anaconda3"), ("bin", "envs", "lib", "share")),
    ".local": ("bin", "lib", "share/fnm", "share/mise", "share/pipx/venvs", "share/pnpm/nodejs", "share/uv"),
}
"""What tools install in a home, by the name of their directory. Precise: beside it, they keep credentials."""


@dataclass(frozen=True)
class RootView:
    """What a command may read, apart from its workspace."""

    system: tuple[str, ...]
    hidden: tuple[str, ...]
    """Paths to hide within the system directories: homes and keys."""
    more: tuple[str, ...]
    """Further readable paths; those of them below hidden ones are visible nevertheless."""
    state: str
    """The worker's state directory, hidden wherever it lies; empty: none."""

    def readable(self) -> Iterator[str]:
        """The largest visible subtrees, without the hidden paths."""
        state = (self.state,) if self.state else ()
        for top in self.system:
            yield from without(top, (*self.hidden, *state))
        for top in self.more:
            yield from without(top, state)


def root_view(workspace: str, state: Path | None, readable: Iterable[str]) -> RootView:
    """The view for a command in this workspace. Homes are looked up once per process, all else at every call."""
    hidden = [place for place in (*_homes(), *_keys()) if _is_of_system(place) and os.path.exists(place)]
    kept = os.path.realpath(state) if state else ""
    wanted: list[str] = []
    for path in (*_python(kept), *_searched(kept), *_tools(), os.path.realpath("/etc/resolv.conf"), *readable):
        wanted += [path, os.path.realpath(path)]
    found = [
        path
        for path in dict.fromkeys(wanted)
        if os.path.isabs(path)
        and os.path.exists(path)
        and path != workspace
        and not is_below(path, workspace)
        and not (kept and (path == kept or is_below(path, kept)))
        and (any(is_below(path, place) or path == place for place in hidden) or not _is_of_system(path))
    ]
    return RootView(tuple(path for path in SYSTEM if os.path.exists(path)), tuple(hidden), tuple(found), kept)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is inside a directory."""
    return path.startswith(folder.rstrip("/") + "/")


def without(top: str, hidden: Iterable[str]) -> Iterator[str]:
    """The largest subtrees of a directory that contain none of the hidden paths."""
    hidden = tuple(hidden)
    if any(path == top or is_below(top, path) for path in hidden):
        return
    if not any(is_below(path, top) for path in hidden):
        yield top
        return
    names: list[str] = []
    with suppress(OSError), os.scandir(top) as entries:
        names = sorted(entry.path for entry in entries if not entry.is_symlink())
    for path in names:
        yield from without(path, hidden)


def _is_of_system(path: str) -> bool:
    return any(path == top or is_below(path, top) for top in SYSTEM)


def _python(state: str) -> Iterator[str]:
    """The installation of Python; in a home or the like, only its parts."""
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        if _may_be_seen(prefix, state):
            yield prefix
        else:
            yield from (f"{prefix}/{name}" for name in ("bin", "lib", "lib64", "pyvenv.cfg"))


def _searched(state: str) -> Iterator[str]:
    for path in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(path) and _may_be_seen(path, state):
            yield os.path.normpath(path)


def _tools() -> Iterator[str]:
    """The programs of known tools, in the home and wherever PATH leads into such a tool."""
    tops = [f"{Path.home()}/{tool}" for tool in _TOOLS_AT_HOME]
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        tops += [str(place) for place in Path(entry).parents if place.name in _TOOLS_AT_HOME]
    for top in dict.fromkeys(tops):
        if os.path.isdir(top):
            yield from (f"{top}/{part}" for part in _TOOLS_AT_HOME[os.path.basename(top)])


def _may_be_seen(path: str, state: str) -> bool:
    """Whether a directory neither is nor contains a home or the worker's state."""
    real = os.path.realpath(path)
    kept = (*_homes(), *([state] if state else []))
    return (
        real != "/"
        and os.path.dirname(real) != "/home"
        and not any(place == real or is_below(place, real) for place in kept)
    )


def _homes() -> tuple[str, ...]:
    """The homes of people and of the worker's user; not those of daemons, which often are system directories."""
    found = {os.path.realpath(place) for place in (*_homes_of_people(), str(Path.home()), "/root", "/home")}
    return tuple(sorted(place for place in found if not _is_system_home(place)))


@cache
def _homes_of_people() -> list[str]:
    """From the user database, asked once: it may be on another machine."""
    with suppress(KeyError, OSError):
        return [
            each.pw_dir for each in pwd.getpwall() if each.pw_uid in (0, os.getuid()) or 1_000 <= each.pw_uid < 60_000
        ]
    return []


def _is_system_home(place: str) -> bool:
    """Whether hiding this home would hide the system."""
    ours = tuple(top for top in SYSTEM if not top.startswith(("/opt", "/home")))
    return place in ("/", *SYSTEM) or any(is_below(place, top) or is_below(top, place) for top in ours)


def _keys() -> list[str]:
    return [str(path) for pattern in _KEYS for path in Path("/").glob(pattern)]

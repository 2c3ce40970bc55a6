"""The part of the host's file system that commands may see, as an allow-list: levels 1 and 2.

Visible are the system directories, the Python of the worker, the directories on PATH, programs that known tools install
in a home, and PLANS_SANDBOX_READ. Within them, homes, the worker's state directory and key files are hidden again. A
home, or a directory that contains one, is never taken from PATH; nor is what a command could have put in place of an
entry: one in the workspace, or one that leads by a link to a directory of a home that holds no programs.

A list of what to hide is never complete: it missed homes opened by PATH and sockets outside /run.
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


_OF_PROGRAMS = frozenset(("bin", ".bin", "sbin", "shims", "scripts", "libexec", "lib", "lib64", "pyvenv.cfg"))
"""What a directory of programs, or a part of Python, is called at the end of a link that leads into a home."""
_MOST_LINKS = 40
"""As many as the kernel follows in a path."""


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
    installed = [path for path in (*_python(kept), *_searched(kept), *_tools()) if _leads_to_programs(path)]
    for path in (*installed, os.path.realpath("/etc/resolv.conf"), *readable):
        if not any(hop == workspace or is_below(hop, workspace) for hop in _hops(path)):
            wanted += _names_of(path, kept)
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
            yield path


def _names_of(path: str, state: str) -> list[str]:
    """The names under which a path is visible: its own, if nothing else is called so, and the real one."""
    real, named = os.path.realpath(path), os.path.normpath(path)
    # Through a link, what is hidden below it would be visible under another name.
    is_another = named != real and (os.path.realpath(named) != real or (bool(state) and is_below(state, real)))
    return [real] if is_another else [named, real]


def _leads_to_programs(path: str) -> bool:
    """Whether a path is no link into a home, or leads to programs: a command may have made it, in another workspace."""
    real = os.path.realpath(path)
    if real == os.path.normpath(path) or _is_of_system(real) or not any(is_below(real, home) for home in _homes()):
        return True
    parts = {part.rpartition("/")[2] for parts in _TOOLS_AT_HOME.values() for part in parts}
    return os.path.basename(real).lower() in _OF_PROGRAMS | parts or os.path.isdir(f"{real}/bin")


def _hops(path: str) -> Iterator[str]:
    """Every path that is passed on the way to what a path leads to."""
    place, left, links = "/", path.split("/")[::-1], 0
    while left and links < _MOST_LINKS:
        name = left.pop()
        if name in ("", ".", ".."):
            place = os.path.dirname(place) if name == ".." else place
            continue
        step = os.path.join(place, name)
        yield step
        try:
            target = os.readlink(step)
        except OSError:
            place = step
            continue
        links += 1
        place = "/" if target.startswith("/") else place
        left += target.split("/")[::-1]


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

"""The command line of bubblewrap, sandbox level 2: the visible part of the host, the workspace, its protected files.

Directories above protected files are mount points, since a read-only file can be replaced by renaming one above it; the
price is "cross-device link" for a rename between them, which `mv` handles.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from plansurvive.activities.sandbox.root_view import RootView, is_below
from plansurvive.plans.errors import ToolError

PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""Where bubblewrap may be: directories that only root writes to, never those that PATH names."""
MAX_BINDS = 1_000
"""Of protected files and the directories above them. It takes bubblewrap seconds; with more, commands are refused."""


def program(places: Iterable[str] = PROGRAMS) -> str:
    """The path of bubblewrap; empty if it is not installed."""
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    return ""


def arguments(
    view: RootView, workspace: str, temporary: str, directory: str, protected: Iterable[str], *, network: bool
) -> Iterator[str]:
    """All arguments but the command and its environment. Raises ToolError RESOURCE_LIMIT (too many protected files)."""
    yield from ("--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", *([] if network else ["--unshare-net"]), "--cap-drop", "ALL")
    for path in view.system:
        yield from ("--symlink", os.readlink(path), path) if os.path.islink(path) else ("--ro-bind", path, path)
    for path in view.hidden:
        yield from _cover(path)
    yield from ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--tmpfs", "/run", "--tmpfs", "/var/tmp", "--symlink", "/run", "/var/run")  # noqa: S108
    yield from ("--bind", temporary, "/tmp")  # noqa: S108
    for path in view.more:
        yield from ("--ro-bind", path, path)
    yield from ("--bind", workspace, workspace)
    visible = (workspace, *view.system, *view.more)
    if view.state and os.path.isdir(view.state) and any(is_below(view.state, top) for top in visible):
        yield from ("--tmpfs", view.state)
    for path in _sockets(workspace):
        if any(is_below(path, top) for top in visible) and not is_below(path, view.state or "/"):
            yield from ("--ro-bind", "/dev/null", path)
    yield from _pins(workspace, protected)
    yield from ("--chdir", directory)


def _cover(path: str) -> tuple[str, ...]:
    return ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)


def _pins(workspace: str, protected: Iterable[str]) -> Iterator[str]:
    """Bind protected files read-only, and the directories above them to themselves, so that none can be renamed.

    Links, and names that do not exist, cannot be bound: changes of those are reported after the command.
    """
    read_only: set[str] = set()
    above: set[str] = set()
    for path in protected:
        if not is_below(path, workspace):
            continue
        place = os.path.dirname(path)
        while is_below(place, workspace):
            above.add(place)
            place = os.path.dirname(place)
        if _can_be_bound(path):
            read_only.add(path)
        elif _is_socket(path):
            yield from ("--ro-bind", "/dev/null", path)
    for path in _other_names(workspace, read_only):  # a second link is the same file: writing to it would change both
        read_only.add(path)
        above |= set(_above(path, workspace))
    above = {path for path in above if _can_be_bound(path) and path not in read_only}
    if len(above) + len(read_only) > MAX_BINDS:
        raise ToolError(
            "RESOURCE_LIMIT",
            f"the workspace has {len(read_only)} protected files and directories, and at most {MAX_BINDS} can be"
            f" protected from a command; many are in '{_fullest(read_only, workspace)}': delete them, or use another"
            " workspace",
        )
    inside = [path for path in above | read_only if not any(part in read_only for part in _above(path, workspace))]
    for path in sorted(inside, key=lambda each: each.count("/")):
        yield from ("--ro-bind" if path in read_only else "--bind", path, path)


def _other_names(workspace: str, read_only: Iterable[str]) -> list[str]:
    """The other names in the workspace of protected files that have some. Searched for only if there are any."""
    linked: dict[tuple[int, int], int] = {}
    own: set[str] = set()
    for top in read_only:
        files = [top] if not os.path.isdir(top) else [f"{at}/{name}" for at, _, names in os.walk(top) for name in names]
        for path in files:
            with suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    linked[status.st_dev, status.st_ino] = status.st_nlink
                    own.add(path)
    if not linked:
        return []
    inodes, found = {inode for _, inode in linked}, list[str]()
    pending = [workspace]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.inode() in inodes and entry.path not in own and not entry.is_symlink():
                    found.append(entry.path)
    return found


def _above(path: str, workspace: str) -> Iterator[str]:
    while is_below(path := os.path.dirname(path), workspace):
        yield path


def _can_be_bound(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _fullest(paths: set[str], workspace: str) -> str:
    """The directory that holds most of these paths, relative to the workspace."""
    folders = [os.path.dirname(path) for path in paths]
    found = os.path.relpath(max(set(folders), key=folders.count), workspace)
    return os.fsencode(found).decode("utf-8", "backslashreplace")


def _sockets(workspace: str) -> list[str]:
    """The named Unix sockets of the host: a program can connect to them even where it cannot write.

    The kernel tells the names under which they were bound. Where one may be elsewhere by now (moved, linked, or bound
    by a relative name), the workspace is searched.
    """
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split(None, 7) for line in [*file][1:]]
    except OSError:
        return []
    found, astray = set(), False
    device = _device(workspace)
    for name in {row[7] for row in rows if len(row) == 8 and not row[7].startswith("@")}:
        place = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        if name.startswith("/") and _is_socket(place):
            found.add(place)
            astray = astray or os.lstat(place).st_nlink > 1
        else:
            astray = astray or not name.startswith("/") or _device(os.path.dirname(name)) in (None, device)
    return sorted(found.union(_sockets_below(workspace)) if astray else found)


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def _sockets_below(top: str) -> Iterator[str]:
    """The sockets in a directory, without a look at each file."""
    folders = [top]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and _is_socket(entry.path):
                        yield entry.path
        except OSError:
            continue

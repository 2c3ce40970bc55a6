"""Drops the privileges of a root worker for a command: an own user id, no capabilities, a private mount namespace.

The workspace and the temporary directory are mounted over themselves as ID-mapped clones: the command's user sees
itself as their owner, while on disk the files stay the owner's. Directories that the user could not pass (such as
/root, mode 0700) are covered by an empty file system that holds only what the command may see. All mounts are private
and vanish with the command. Linux, root. Standard library only: the launcher loads this file.

Rejected: uid 0 without capabilities, which still owns /proc/sys and sockets of root, and changing the owner of all
files.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from contextlib import suppress

FIRST_USER = 0x70000000
"""The first user id that systemd's documentation lists as unused; a command's is this plus its launcher's pid."""
NEW_MOUNTS, NEW_IPC, NEW_PROCESSES, NEW_USERS = 0x20000, 0x08000000, 0x20000000, 0x10000000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR, _CAPSET = (428, 429, 442, {"x86_64": 126, "aarch64": 91})
_CLONE, _RECURSIVE, _CLOEXEC, _EMPTY_PATH, _FROM_FD = 1, 0x8000, 0x80000, 0x1000, 4
_READ_ONLY, _NO_SET_USER_ID, _NO_DEVICES, _NO_PROGRAMS, _ID_MAPPED = 1, 2, 4, 8, 0x100000
_REMOUNT, _BIND, _RECURSIVELY, _PRIVATE = 32, 4096, 16384, 1 << 18
_HERE = -100
_DROP_BOUNDING = 24
_ALL_IDS = 2**32 - 1

Maps = dict[tuple[int, int], int]
"""User namespaces by owner: file descriptors of the maps between the owner on disk and the command's user."""


def user() -> int:
    """The user and group id for the command of this launcher."""
    return FIRST_USER + os.getpid()


def users(new: int) -> list[str]:
    """The lines of /etc/passwd with one for the command's user: programs look up who they are."""
    with suppress(OSError), open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as file:
        return [*file.read().splitlines(), f"plans:x:{new}:{new}::/:/bin/sh", ""]
    return [f"plans:x:{new}:{new}::/:/bin/sh", ""]


def is_set_user_id(program: str) -> bool:
    """Whether a program has rights of its own, which no_new_privs would take from it."""
    return bool(os.stat(program).st_mode & stat.S_ISUID)


def maps_for(paths: list[str], new: int) -> Maps:
    """The ID maps for the owners of these paths. Raises OSError. Call it before entering any namespace."""
    found: Maps = {}
    for path in paths:
        owner = _owner(path)
        if owner not in found:
            found[owner] = _id_map(*owner, new)
    return found


def enter(owned: list[str], needed: list[str], maps: Maps, *, alone: bool = False) -> None:
    """Make `owned` writable and `needed` readable for the user of the maps, in a new mount namespace. Raises OSError.

    `alone`: the process is the first of a PID namespace; it gets a /proc, /dev/shm and IPC namespace of its own.
    """
    _call("unshare", _libc.unshare(NEW_MOUNTS | (NEW_IPC if alone else 0)))
    _mount(None, "/", None, _PRIVATE | _RECURSIVELY)
    closed = _closed([*owned, *needed], owned)
    hard = [path for path in needed if _closed([path], owned) or not _is_open(path)]
    trees = [(path, _clone(path, maps[_owner(path)], 0)) for path in owned]
    trees += [(path, _clone(path, maps.get(_owner(path)), _READ_ONLY)) for path in hard]
    for place in closed:
        _mount("none", place, "tmpfs", _NO_SET_USER_ID | _NO_DEVICES, "mode=0755,size=4m")
    for path, tree in sorted(trees, key=lambda each: len(each[0])):
        _make_mount_point(path, tree)
        _call(path, _libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), _FROM_FD))
        os.close(tree)
    for place in closed:
        _mount(None, place, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SET_USER_ID | _NO_DEVICES)
    if alone:
        _mount("proc", "/proc", "proc", _NO_SET_USER_ID | _NO_DEVICES | _NO_PROGRAMS | _READ_ONLY)
        if os.path.isdir("/dev/shm"):  # noqa: S108
            _mount("none", "/dev/shm", "tmpfs", _NO_SET_USER_ID | _NO_DEVICES, "mode=1777")  # noqa: S108


def become(new: int, *, for_good: bool) -> None:
    """Become a user without groups and capabilities; `for_good`: no program can give them back. Raises OSError."""
    for capability in range(64) if for_good else ():
        if _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0):
            break
    os.setgroups([])
    os.setresgid(new, new, new)
    os.setresuid(new, new, new)
    none = struct.pack("=6I", 0, 0, 0, 0, 0, 0)
    header = struct.pack("=Ii", 0x20080522, 0)
    _call("capset", _libc.syscall(_CAPSET.get(os.uname().machine, -1), header, none))


def _closed(paths: list[str], owned: list[str]) -> list[str]:
    """The topmost ancestors of these paths that other users cannot pass, apart from what is owned."""
    found: list[str] = []
    for path in paths:
        parts = path.split("/")
        for end in range(2, len(parts)):
            place = "/".join(parts[:end])
            if any(place == one or place.startswith(f"{one}/") for one in owned):
                break
            if not os.stat(place).st_mode & stat.S_IXOTH:
                found.append(place)
                break
    tops = set(found)
    return [place for place in sorted(tops) if not any(place.startswith(f"{other}/") for other in tops)]


def _is_open(path: str) -> bool:
    """Whether every user may read it."""
    mode = os.stat(path).st_mode
    return bool(mode & stat.S_IROTH and (mode & stat.S_IXOTH or not stat.S_ISDIR(mode)))


def _owner(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_uid, status.st_gid


def _clone(path: str, id_map: int | None, attributes: int) -> int:
    """A detached clone of the mounts below a path, ID-mapped if there is a map; returns its descriptor."""
    flags = _CLONE | _CLOEXEC | _RECURSIVE
    tree = int(_call(path, _libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), flags)))
    attributes |= _NO_SET_USER_ID | _NO_DEVICES
    for mapped in (True, False) if id_map is not None else (False,):
        wanted = struct.pack(
            "=4Q", attributes | (_ID_MAPPED if mapped else 0), 0, 0, id_map if mapped and id_map else 0
        )
        if not _libc.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _RECURSIVE, wanted, ctypes.c_size_t(32)):
            return tree
        if not attributes & _READ_ONLY:
            break  # a workspace that its user cannot write to is of no use
    error = ctypes.get_errno()
    raise OSError(error, f"{path} cannot be mounted with mapped user ids: {os.strerror(error)}")


def _make_mount_point(path: str, tree: int) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.mkdir(path, 0o755)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _id_map(owner: int, group: int, new: int) -> int:
    """A user namespace in which the owner on disk and the new user are exchanged."""
    told, telling = os.pipe()
    waiting, ending = os.pipe()
    child = os.fork()
    if not child:
        os.close(ending)
        os.write(telling, b"0" if _libc.unshare(NEW_USERS) else b"1")
        os.read(waiting, 1)
        os._exit(0)
    try:
        os.close(telling)
        if os.read(told, 1) != b"1":
            raise OSError(1, "user namespaces are not available to root")
        for kind, number in (("uid", owner), ("gid", group)):
            with open(f"/proc/{child}/{kind}_map", "w") as file:
                file.write(_exchanged(number, new))
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ending)
        os.waitpid(child, 0)
        os.close(told)
        os.close(waiting)


def _exchanged(owner: int, new: int) -> str:
    """An ID map that exchanges two ids and keeps all others: lines of first id on disk, first id shown, count."""
    low, high = sorted((owner, new))
    rows = [(0, 0, low), (low, high, 1), (low + 1, low + 1, high - low - 1), (high, low, 1)]
    rows.append((high + 1, high + 1, _ALL_IDS - high - 1))
    return "".join(f"{first} {shown} {count}\n" for first, shown, count in rows if count > 0)


def _mount(source: str | None, place: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [os.fsencode(text) if text is not None else None for text in (source, place, kind, data)]
    _call(place, _libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))


def _call(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


_libc = ctypes.CDLL(None, use_errno=True)

"""Judges: each looks from outside, with the rights of the tests, whether an attack reached what it was after.

None asks the command: not its exit code and not what it says about itself. A judge changes the host back.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from tests.attacks.ground import Ground
from tests.attacks.workers import WORKER_KEY

Escaped: TypeAlias = Callable[[], bool]
Judging: TypeAlias = AbstractContextManager[Escaped]
HEARD_SECONDS = 0.3
"""How long a listener waits for what may come after the command has ended; what came before is in its queue."""


def _outside(ground: Ground) -> dict[str, object]:
    """Everything outside the workspace that the user owns, but for times."""
    found: dict[str, object] = {}
    for top in (ground.outside, ground.home):
        for path in sorted(top.rglob("*")):
            if path == ground.workspace or ground.workspace in path.parents:
                continue
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (stat.S_IFMT(status.st_mode), content)
    found["state"] = (ground.state / "secret").read_bytes() if (ground.state / "secret").exists() else b""
    return found


@contextmanager
def written(ground: Ground) -> Iterator[Escaped]:
    """A file outside the workspace is new, changed, or gone."""
    before = _outside(ground)
    yield lambda: _outside(ground) != before


@contextmanager
def stolen(ground: Ground) -> Iterator[Escaped]:
    """The canary came back, or lies in the workspace, as it is or as another encoding of it."""
    yield lambda: ground.canary.encode() in ground.loot()


@contextmanager
def key_stolen(ground: Ground) -> Iterator[Escaped]:
    """The LLM's key of the worker came back, or lies in the workspace."""
    yield lambda: WORKER_KEY.encode() in ground.loot()


@contextmanager
def marked(ground: Ground) -> Iterator[Escaped]:
    """Permission bits, owner, times or attributes of a file outside were changed."""
    path = ground.outside / "file"

    def look() -> tuple[object, ...]:
        status = path.stat()
        names = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        return (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, names)

    before = look()
    yield lambda: look() != before


def kernel_value(path: str) -> Callable[[Ground], Judging]:
    """A judge of a setting of the host's kernel; what it was is written back."""

    @contextmanager
    def judge(ground: Ground) -> Iterator[Escaped]:
        value = _value(path)
        ground.tokens["NEXT"] = str(int(value) + 1) if value.isdigit() else "N" if value == "Y" else "Y"
        try:
            yield lambda: _value(path) != value
        finally:
            if _value(path) != value:
                Path(path).write_text(value)

    return judge


def _value(path: str) -> str:
    return Path(path).read_text().strip()


@contextmanager
def host_name(_: Ground) -> Iterator[Escaped]:
    """The host has another name, which is given back."""
    before = socket.gethostname()
    try:
        yield lambda: socket.gethostname() != before
    finally:
        if socket.gethostname() != before:
            socket.sethostname(before)


@contextmanager
def set_id(ground: Ground) -> Iterator[Escaped]:
    """A file of the workspace gives whoever runs it the user's, the group's or further rights."""

    def gives(path: Path) -> bool:
        status = path.lstat()
        bits = stat.S_ISREG(status.st_mode) and bool(status.st_mode & (stat.S_ISUID | stat.S_ISGID))
        return bits or "security.capability" in os.listxattr(path, follow_symlinks=False)

    yield lambda: any(gives(path) for path in ground.workspace.rglob("*"))


@contextmanager
def device_made(ground: Ground) -> Iterator[Escaped]:
    """There is a device in the workspace."""

    def is_device(path: Path) -> bool:
        mode = path.lstat().st_mode
        return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and path.lstat().st_rdev != 0)

    yield lambda: any(is_device(path) for path in ground.workspace.rglob("*"))


@contextmanager
def immutable(ground: Ground) -> Iterator[Escaped]:
    """A file outside can no longer be changed."""

    def flags() -> str:
        told = subprocess.run(["lsattr", "-d", str(ground.outside / "file")], capture_output=True, text=True)
        return told.stdout.split(" ")[0]

    yield lambda: bool(set(flags()) & set("ia"))


def planted(*names: str) -> Callable[[Ground], Judging]:
    """A judge of protected names: what a program would find there afterwards has the attacker's text, or is gone."""

    @contextmanager
    def judge(ground: Ground) -> Iterator[Escaped]:
        def look() -> Mapping[str, bytes]:
            paths = {name: ground.workspace / name for name in names}
            return {name: path.read_bytes() if path.is_file() else b"" for name, path in paths.items()}

        before = look()
        yield lambda: look() != before

    return judge

"""The calls that are under way in all worker processes of a state directory: in which workspace, and with which trace.

Each has a file `KEY.call` with the path of its workspace, beside its trace `KEY.trace`. While an attempt runs, its
process holds a shared lock on it, which the kernel releases when the process dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from plansurvive.activities.tracing.trace import Trace, read

SUFFIX = ".call"


def begin(trace: Path, root: str) -> int:
    """Enter a call into the directory of its trace. Returns the descriptor that holds the lock; -1 if that failed."""
    try:
        descriptor = os.open(trace.with_suffix(SUFFIX), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.pwrite(descriptor, os.fsencode(root), 0)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def end(descriptor: int) -> None:
    """The attempt has ended, and what it changed is recorded."""
    if descriptor >= 0:
        os.close(descriptor)


def not_of_others(trace: Path, paths: Collection[str]) -> set[str]:
    """The absolute paths that no call but the one with this trace has changed, or may have changed."""
    left = set(paths)
    for file in trace.parent.glob(f"*{SUFFIX}"):
        if file.stem == trace.stem or not left:
            continue
        with suppress(OSError):  # it ends at this moment
            root, of_call = os.fsdecode(file.read_bytes()), read(file.with_suffix(".trace"))
            below = {path: path[len(root) + 1 :] for path in left if path.startswith(f"{root}/")}
            left -= {path for path, name in below.items() if _may_have_changed(of_call, file, name)}
    return left


def _may_have_changed(trace: Trace, file: Path, name: str) -> bool:
    return trace.has(name) or (not trace.is_under_way and _runs(file))


def _runs(file: Path) -> bool:
    """Whether a process holds the lock."""
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

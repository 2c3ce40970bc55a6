"""The processes of a command, as seen by the launcher that is their subreaper: find them, count them, end them all.

Standard library only: the launcher loads this file.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

KILL_SECONDS = 30.0
"""Give up killing after this long: a process stuck in the kernel must not block us indefinitely."""


def descendants(top: int) -> list[int]:
    """Pids of all descendants of `top`, from /proc. Orphans are included where `top` is their subreaper."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(parent(int(name)), []).append(int(name))
    found: list[int] = []
    pending = [top]
    while pending:
        below = children.get(pending.pop(), [])
        found.extend(below)
        pending.extend(below)
    return found


def parent(process: int) -> int:
    """The pid of a process's parent; 0 if the process has ended."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{process}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def inside(wrapper: int) -> list[int]:
    """The command's process group without bubblewrap's own two processes: itself and its pid 1."""
    below = descendants(wrapper)
    own = {wrapper, *(process for process in below if parent(process) == wrapper)}
    found = []
    for process in below:
        with suppress(ProcessLookupError):
            if process not in own and os.getpgid(process) == wrapper:
                found.append(process)
    return found


def on_host() -> int:
    """Number of processes and threads on the host: a cheap upper bound, checked before scanning /proc."""
    with suppress(OSError, ValueError, IndexError), open("/proc/loadavg") as file:
        return int(file.read().split()[3].partition("/")[2])
    return 2**62


def reap(codes: dict[int, int]) -> bool:
    """Reap exited children into `codes`; returns whether any child is left."""
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return True
            codes[process] = status
    return False


def kill_all(codes: dict[int, int]) -> None:
    """SIGKILL every descendant until none is left. All are stopped first: one that is killed cannot be outrun by forks.

    Repeated, because a process may be started during the scan.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while reap(codes) and time.monotonic() < deadline:
        stopped: set[int] = set()
        while new := set(descendants(os.getpid())) - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
            if time.monotonic() > deadline:
                break
        _signal(stopped, signal.SIGKILL)
        time.sleep(0.005)


def _signal(processes: set[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)

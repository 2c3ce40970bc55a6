"""The processes of a command, as seen by the launcher that is their subreaper: find them, count them, end them all,
and look at what bubblewrap has mounted for them.

Standard library only: the launcher loads this file.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes 3 ms to load
    from typing import Any

NEW_ROOT = "/newroot"
"""Where bubblewrap builds the file system of its command."""
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


def misplaced(order: dict[str, Any], wrapper: int, barrier: int) -> str:
    """A path in the workspace that bubblewrap has not mounted as the worker saw it; empty if all are as they should.

    Bubblewrap takes paths and follows links. A command that runs already in the same workspace can exchange a directory
    with a link to one outside, at the right moment. So the kernel is asked what lies where, when all is mounted and the
    command has not begun: bubblewrap then waits for the end of the pipe `barrier`. If something is not as it should be,
    its processes are dead before this returns.
    """
    with suppress(BrokenPipeError):  # it has ended, and said why
        size = fcntl.fcntl(barrier, fcntl.F_GETPIPE_SZ)
        os.write(barrier, b"\n" * (size + 1))  # more than fits: this returns when bubblewrap reads
        below = descendants(wrapper)
        if below and (place := _misplaced(order, below)):
            _signal({*below}, signal.SIGKILL)  # first: when bubblewrap itself ends, it is too late
            _signal({wrapper}, signal.SIGKILL)
            return place
    return ""


def _misplaced(order: dict[str, Any], processes: list[int]) -> str:
    """Each bind in the workspace must be a part of what it is mounted on, and `cwd` what the open directory is."""
    workspace, cwd, words = order["disks"][0], NEW_ROOT + order["cwd"], order["bwrap"]
    every = [_mounts(str(each)) for each in processes]
    mounts = next(filter(None, every), {})
    above = [mount for mount in mounts.values() if is_at_or_below(cwd, mount[3])]
    own = _mounts("self").get(_mount_of(order["directory"]))
    here = os.readlink(f"/proc/self/fd/{order['directory']}")
    if not above or not own or _inside(max(above, key=lambda mount: len(mount[3])), cwd) != _inside(own, here):
        return str(order["cwd"])
    last = {mount[3]: mount for mount in mounts.values()}
    for word, source, place in zip(words, words[1:], words[2:], strict=False):
        if word in ("--bind", "--ro-bind") and source != os.devnull and place.startswith(f"{workspace}/"):
            found = last.get(NEW_ROOT + place)
            if not found or found[0] not in mounts or _inside(mounts[found[0]], found[3]) != found[1:3]:
                return str(place)
    return ""


Mount = tuple[int, str, str, str]
"""Id of the mount it is on, device, path in the file system of that device, where it is mounted."""


def _mounts(process: str) -> dict[int, Mount]:
    """The mounts that a process sees, by id; none if it has ended."""
    found: dict[int, Mount] = {}
    with suppress(OSError), open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file.read().split("\n"):
            words = line.split(" ")
            if len(words) > 5:
                found[int(words[0])] = (int(words[1]), words[2], _unescaped(words[3]), _unescaped(words[4]))
    return found


def _unescaped(path: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


def _mount_of(descriptor: int) -> int:
    with suppress(OSError, ValueError), open(f"/proc/self/fdinfo/{descriptor}") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("mnt_id:")), 0)
    return 0


def _inside(mount: Mount, path: str) -> tuple[str, str]:
    """Device and path in its file system of what a path names that lies on a mount."""
    return mount[1], f"{mount[2]}/{path[len(mount[3]) :]}".replace("//", "/").replace("//", "/").rstrip("/") or "/"


def is_at_or_below(path: str, folder: str) -> bool:
    """Whether a path is a directory, or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")

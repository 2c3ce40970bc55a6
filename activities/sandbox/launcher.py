"""Parent process of a command: starts it and kills everything it leaves behind. Standalone, standard library only.

    python -I -S launcher.py CONTROL DIRECTORY GRACE RULES COMMAND ...

CONTROL is the read end of a pipe whose write end only the worker holds. When it closes, the worker is dead (or has
stopped waiting) and every process of the command is killed at once; a byte on it requests a graceful stop: SIGTERM,
GRACE seconds, SIGKILL. When the command itself exits, its leftover processes are killed too. As a child subreaper this
process inherits orphans, so double forks and new sessions do not escape. It exits with the command's exit code, or
128 + n for a signal. It is a separate process because a multi-threaded worker must not run code between fork and exec.
A command that SIGKILLs this process can leave processes behind; only a sandbox prevents that.

RULES is a JSON object: resource `limits`, `disks` that must keep free space, `landlock` (see landlock.py), and
`wrapped` if COMMAND is bubblewrap. A command that exceeds its process limit or fills a disk is killed; this process
then terminates itself with the signal TOO_MANY or NO_ROOM, which cannot be confused with an exit code.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
MAX_OPEN_FILES = 4_096
TOO_MANY, NO_ROOM = signal.SIGUSR1, signal.SIGUSR2
"""Signals that report too many processes, or too little free disk space."""
WATCH_SECONDS = 0.5
KILL_SECONDS = 30.0
"""Give up killing after this long: a process stuck in the kernel must not block us indefinitely."""


def main(arguments: list[str]) -> int:
    """Run the command to completion; returns its exit code."""
    control, directory, grace = int(arguments[0]), int(arguments[1]), float(arguments[2])
    rules, command = json.loads(arguments[3]), arguments[4:]
    _prctl(SET_CHILD_SUBREAPER, 1)
    woken = _wake_on_signals()
    main_child = _start(command, control, directory, rules)
    codes: dict[int, int] = {}
    room, excess = {disk: _free(disk) for disk in rules.get("disks", [])}, 0
    while _reap(codes) and main_child not in codes and not excess:
        ready, _, _ = select.select([control, woken], [], [], WATCH_SECONDS)
        if not ready:
            excess = _excess(rules.get("limits", {}), room)
        if woken in ready:
            os.read(woken, 1_024)
        if control in ready:
            if os.read(control, 1):
                _ask_to_end(main_child, codes, woken, grace, rules.get("wrapped", False))
            break
    _kill_all(codes)
    if excess:
        signal.signal(excess, signal.SIG_DFL)
        os.kill(os.getpid(), excess)
    return _exit_code(codes.get(main_child))


def _start(command: list[str], control: int, directory: int, rules: dict[str, Any]) -> int:
    """Start the command in a new session; returns its pid."""
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(directory)
        return child
    try:
        os.setsid()
        os.fchdir(directory)
        os.close(directory)
        os.close(control)
        _prctl(SET_PDEATHSIG, signal.SIGKILL)
        _limit(rules.get("limits", {}))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores these, and the command would inherit that
        if rules.get("landlock"):
            _landlock(rules["landlock"])
        if os.getppid() == parent:
            os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _limit(limits: dict[str, int | None]) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: limits.get("open_files") or MAX_OPEN_FILES,
        resource.RLIMIT_CPU: limits.get("cpu"),
        resource.RLIMIT_FSIZE: limits.get("file"),
        resource.RLIMIT_AS: limits.get("memory"),
    }
    for kind, limit in wanted.items():
        if limit is not None:
            _, most = resource.getrlimit(kind)
            most = 2**62 if most == resource.RLIM_INFINITY else most
            soft = min(limit, most)
            # The hard limit is one second later, so that SIGXCPU arrives first and shows the reason.
            hard = {resource.RLIMIT_NOFILE: most, resource.RLIMIT_CPU: min(soft + 1, most)}.get(kind, soft)
            resource.setrlimit(kind, (soft, hard))


def _excess(limits: dict[str, int | None], room: dict[str, int]) -> int:
    """TOO_MANY or NO_ROOM if the command exceeds a limit, else 0. A disk that was full at the start does not count."""
    most, least = limits.get("processes"), limits.get("free")
    if most and _on_host() > most and len(_descendants(os.getpid())) > most:
        return TOO_MANY
    if least and any(_free(disk) < least <= before for disk, before in room.items()):
        return NO_ROOM
    return 0


def _on_host() -> int:
    """Number of processes and threads on the host: a cheap upper bound, checked before scanning /proc."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return 2**62


def _free(disk: str) -> int:
    with suppress(OSError):
        found = os.statvfs(disk)
        return found.f_bavail * found.f_frsize
    return 2**62


def _landlock(rule: dict[str, Any]) -> None:
    """Apply the Landlock rule, and the seccomp filter unless the network is allowed."""
    landlock, seccomp = (
        _beside("landlock"),
        _beside("seccomp"),
    )  # load both first: afterwards their files may be unreadable
    landlock.restrict(rule["writable"], rule["readable"], rule["network"])
    if not rule["network"] and seccomp.is_possible():
        seccomp.give_up()


def _beside(name: str) -> Any:
    """Load a sibling module by file name: under -I only the standard library is importable."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise OSError(f"{name}.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ask_to_end(main_child: int, codes: dict[int, int], woken: int, grace: float, wrapped: bool) -> None:
    """SIGTERM the command's process group and wait. Not bubblewrap itself: its exit would kill the group at once."""
    for process in _inside(main_child) if wrapped else [-main_child]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while _reap(codes) and (left := deadline - time.monotonic()) > 0:
        select.select([woken], [], [], min(left, 0.2))
        with suppress(BlockingIOError):
            os.read(woken, 1_024)


def _kill_all(codes: dict[int, int]) -> None:
    """SIGKILL every descendant until none is left. Repeated, because a process may fork during the scan."""
    deadline = time.monotonic() + KILL_SECONDS
    while _reap(codes) and time.monotonic() < deadline:
        for process in _descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _descendants(top: int) -> list[int]:
    """Pids of all descendants of `top`, from /proc. Orphans are included, because we are their subreaper."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                after_name = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found: list[int] = []
    pending = [top]
    while pending:
        below = children.get(pending.pop(), [])
        found.extend(below)
        pending.extend(below)
    return found


def _inside(wrapper: int) -> list[int]:
    """The command's process group without bubblewrap's own two processes: itself and its pid 1."""
    own = {wrapper, *(process for process in _descendants(wrapper) if _parent(process) == wrapper)}
    found = []
    for process in _descendants(wrapper):
        with suppress(ProcessLookupError):
            if process not in own and os.getpgid(process) == wrapper:
                found.append(process)
    return found


def _parent(process: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int((Path("/proc") / str(process) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    return 0


def _reap(codes: dict[int, int]) -> bool:
    """Reap exited children into `codes`; returns whether any child is left."""
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return True
            codes[process] = status
    return False


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child exits. Signals to stop come by the control pipe only."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _prctl(option: int, value: int) -> None:
    with suppress(AttributeError, OSError):  # not Linux: there is no subreaper
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _exit_code(status: int | None) -> int:
    if status is None:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

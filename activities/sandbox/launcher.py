"""The parent of a command: starts it, and lets nothing of it live on. A program of its own, standard library only.

    python -I -S launcher.py CONTROL DIRECTORY GRACE RULES COMMAND ...

CONTROL is the reading end of a pipe whose writing end only the worker holds. When it closes, the worker is dead (or
has given up waiting) and every process of the command is killed at once; a byte on it asks for the same, politely
first: SIGTERM, GRACE seconds, SIGKILL. When the command itself ends, what it left behind is killed too. As a child
subreaper this process inherits orphans, so that double forks and new sessions do not get away. It exits with the
command's code, 128 + n for a signal. It runs in a process of its own because a threaded worker must not fork code
by itself. A command that kills this process by force can leave something behind: only a sandbox prevents that.

RULES is a JSON object: `limits` of resources, `disks` that must keep some room, `landlock` (see landlock.py), `wrapped`
when COMMAND is bubblewrap. A command with too many processes, or that takes the last room of a disk, is killed; this
process then ends by the signal TOO_MANY or NO_ROOM, which no exit code of a command can be taken for.
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
"""More processes, less room on a disk than allowed."""
WATCH_SECONDS = 0.5
KILL_SECONDS = 30.0
"""How long to go on killing: a process stuck in the kernel must not keep us for ever."""


def main(arguments: list[str]) -> int:
    """Run the command to its end; returns its exit code."""
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
    """Start the command in a session of its own; returns its process id."""
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
            signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a command inherits that
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
            # One second more, so that the end by SIGXCPU tells why.
            hard = {resource.RLIMIT_NOFILE: most, resource.RLIMIT_CPU: min(soft + 1, most)}.get(kind, soft)
            resource.setrlimit(kind, (soft, hard))


def _excess(limits: dict[str, int | None], room: dict[str, int]) -> int:
    """TOO_MANY or NO_ROOM when the command is beyond a limit; a disk that was full before is not its doing."""
    most, least = limits.get("processes"), limits.get("free")
    if most and _on_host() > most and len(_descendants(os.getpid())) > most:
        return TOO_MANY
    if least and any(_free(disk) < least <= before for disk, before in room.items()):
        return NO_ROOM
    return 0


def _on_host() -> int:
    """Processes and threads there are at all: read at no cost, as long as they are few."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return 2**62


def _free(disk: str) -> int:
    with suppress(OSError):
        found = os.statvfs(disk)
        return found.f_bavail * found.f_frsize
    return 2**62


def _landlock(rule: dict[str, Any]) -> None:
    """Give up what the rule does not allow."""
    landlock, seccomp = _beside("landlock"), _beside("seccomp")  # afterwards they may be out of reach
    landlock.restrict(rule["writable"], rule["readable"], rule["network"])
    if not rule["network"] and seccomp.is_possible():
        seccomp.give_up()


def _beside(name: str) -> Any:
    """The module in the file beside this one: nothing is importable here but the standard library."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise OSError(f"{name}.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ask_to_end(main_child: int, codes: dict[int, int], woken: int, grace: float, wrapped: bool) -> None:
    """SIGTERM to the command's group, and time to clean up. The wrapper itself must stay: its end would be theirs."""
    for process in _inside(main_child) if wrapped else [-main_child]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while _reap(codes) and (left := deadline - time.monotonic()) > 0:
        select.select([woken], [], [], min(left, 0.2))
        with suppress(BlockingIOError):
            os.read(woken, 1_024)


def _kill_all(codes: dict[int, int]) -> None:
    """SIGKILL to every descendant until there is none. Repeated, because a process may fork while we look."""
    deadline = time.monotonic() + KILL_SECONDS
    while _reap(codes) and time.monotonic() < deadline:
        for process in _descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _descendants(top: int) -> list[int]:
    """Process ids below `top`, read from /proc. An orphan is below us: we are its subreaper."""
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
    """The processes of the command's group, without bubblewrap's own two: itself and the first in its name space."""
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
    """Collect ended children; whether any child is left."""
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return True
            codes[process] = status
    return False


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child ends. Signals to end are left to the control pipe."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _prctl(option: int, value: int) -> None:
    with suppress(AttributeError, OSError):  # not on Linux: orphans cannot be inherited there
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _exit_code(status: int | None) -> int:
    if status is None:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Starts a command and kills everything it leaves behind. Runs in the launcher's process; standard library only.

`control` is the read end of a pipe whose write end only the worker holds. When it closes, the worker is dead (or has
stopped waiting) and every process of the command is killed at once; a byte on it requests a graceful stop: SIGTERM,
`grace` seconds, SIGKILL. When the command itself exits, its leftover processes are killed too. As a child subreaper
this process inherits orphans, so double forks and new sessions do not escape. It exits with the command's exit code, or
128 + n for a signal. It is a separate process because a multi-threaded worker must not run code between fork and exec.
Without a sandbox a command that SIGKILLs this process can leave processes behind.

A command that exceeds its process limit or fills a disk is killed; this process then terminates itself with the signal
TOO_MANY or NO_ROOM, and with NOT_CONFINED if the sandbox could not be set up: none can be confused with an exit code.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import select
import signal
import time
from contextlib import suppress

from plansurvive.activities.sandbox import confinement
from plansurvive.activities.sandbox.privileges import is_set_user_id
from plansurvive.activities.sandbox.processes import descendants, inside, kill_all, on_host, reap
from plansurvive.activities.tracing.tracer import Tracer

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes 3 ms to load
    from typing import Any

SET_CHILD_SUBREAPER = 36
TOO_MANY, NO_ROOM, NOT_CONFINED = signal.SIGUSR1, signal.SIGUSR2, signal.SIGVTALRM
"""Signals that report too many processes, too little free disk space, or a sandbox that could not be set up."""
WATCH_SECONDS = 0.5
KEEPER_SECONDS = 10.0
"""How long a keeper has to end the command's processes before the launcher does it itself."""


def main(descriptor: int) -> int:
    """Run a command to completion; returns its exit code. The descriptor holds the order, see `process.Order`."""
    with open(descriptor, "rb") as file:
        order: dict[str, Any] = marshal.load(file)  # noqa: S302 - the worker wrote it
    control, limits = order["control"], order["limits"]
    with suppress(AttributeError, OSError):  # not Linux: there is no subreaper
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken = _wake_on_signals()
    tracer = _tracer(order)
    main_child, problem = confinement.start(order, tracer)
    codes: dict[int, int] = {}
    excess = NOT_CONFINED if problem else 0
    room = {disk: _free(disk) for disk in order["disks"]}
    while reap(codes) and main_child not in codes and not excess:
        ready, _, _ = select.select([control, woken], [], [], WATCH_SECONDS)
        if not ready:
            excess = _excess(limits, room)
        tracer.look_after()
        if woken in ready:
            os.read(woken, 1_024)
        if control in ready:
            if os.read(control, 1):
                _ask_to_end(main_child, codes, woken, order)
            break
    if order["landlock"]:
        _end_keeper(main_child, codes, woken)
    kill_all(codes)
    tracer.finish()
    if problem:
        os.write(2, problem)
    if excess:
        signal.signal(excess, signal.SIG_DFL)
        os.kill(os.getpid(), excess)
    return _exit_code(codes.get(main_child))


def _tracer(order: dict[str, Any]) -> Tracer:
    """The tracer of the command: it decides nothing but who wrote what. Before the first fork, see `Tracer`."""
    is_confined = bool(order["landlock"]) or (bool(order["bwrap"]) and not is_set_user_id(order["bwrap"][0]))
    return Tracer(order["trace"], order["disks"][0], at_once=not order["bwrap"], no_new_privileges=is_confined)


def _excess(limits: dict[str, int | None], room: dict[str, int]) -> int:
    """TOO_MANY or NO_ROOM if the command exceeds a limit, else 0. A disk that was full at the start does not count."""
    most, least = limits.get("processes"), limits.get("free")
    if most and on_host() > most and len(descendants(os.getpid())) > most:
        return TOO_MANY
    if least and any(_free(disk) < least <= before for disk, before in room.items()):
        return NO_ROOM
    return 0


def _free(disk: str) -> int:
    with suppress(OSError):
        found = os.statvfs(disk)
        return found.f_bavail * found.f_frsize
    return 2**62


def _ask_to_end(main_child: int, codes: dict[int, int], woken: int, order: dict[str, Any]) -> None:
    """SIGTERM the command's process group and wait. Not bubblewrap itself: its exit would kill the group at once."""
    for process in inside(main_child) if order["bwrap"] else [-main_child]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + order["grace"]
    while reap(codes) and (left := deadline - time.monotonic()) > 0:
        _doze(woken, min(left, 0.2))


def _end_keeper(keeper: int, codes: dict[int, int], woken: int) -> None:
    """Let the keeper end all processes: it does so in one step, which forks cannot outrun."""
    deadline = time.monotonic() + KEEPER_SECONDS
    with suppress(ProcessLookupError):
        if keeper and keeper not in codes:
            os.kill(keeper, confinement.END)
    while reap(codes) and keeper not in codes and time.monotonic() < deadline:
        _doze(woken, 0.1)


def _doze(woken: int, seconds: float) -> None:
    """Wait for a child to exit, but not longer than this."""
    select.select([woken], [], [], seconds)
    with suppress(BlockingIOError):
        os.read(woken, 1_024)


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child exits. Signals to stop come by the control pipe only."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _exit_code(status: int | None) -> int:
    if status is None:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code

"""Starts a command confined: from the fork in the launcher to the command's own first instruction.

The launcher's processes never take on anything a step gives: the environment goes to the last `execve` only, or to
bubblewrap by its argument file, and the command line begins with an absolute path. Only standard input, output and
error stay open. Standard library only.

At level 1 a **keeper** stands between the launcher and the command, out of the command's reach, and ends all its
processes in one step that forks cannot outrun: for a root worker it is pid 1 of a PID namespace; otherwise it lives in
a Landlock domain that contains the command's, so that a signal to all processes it may reach hits the command's only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
from contextlib import suppress

from plansurvive.activities.sandbox import landlock, privileges, seccomp
from plansurvive.activities.sandbox.processes import misplaced, on_host

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes 3 ms to load
    from typing import Any, NoReturn

    from plansurvive.activities.tracing.tracer import Tracer

SET_PDEATHSIG = 1
MAX_OPEN_FILES = 4_096
CONSTANT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""The environment of every process outside the sandbox."""
END = signal.SIGHUP
"""The signal on which a keeper ends all processes of its command, and itself."""
_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def start(order: dict[str, Any], tracer: Tracer) -> tuple[int, bytes]:
    """Start the command in a new session. Returns its pid (or its bubblewrap's or keeper's), and what went wrong."""
    reading, writing = os.pipe()
    maps: privileges.Maps = {}
    barrier = os.pipe() if order["bwrap"] else (-1, -1)
    new = privileges.user() if order["drop"] else 0
    try:
        if new:
            maps = privileges.maps_for([*order["drop"]["owned"], *order["drop"]["needed"]], new)
            _give_pipes(new)
            if order["landlock"]:
                _unshare_processes()
        launcher, child = os.getpid(), os.fork()
    except OSError as error:
        return 0, _told(error)
    if not child:
        os.close(reading)
        _Child(order, writing, new, maps, barrier[0], tracer).run(launcher)
    os.close(writing)
    tracer.leave()
    with open(reading, "rb") as file:
        problem = file.read(2_000)
    if order["bwrap"]:
        os.close(barrier[0])
        place = "" if problem else misplaced(order, child, barrier[1])
        problem = _told(OSError(2, f"{place} was moved or replaced while the command started")) if place else problem
        tracer.begin()
        os.close(barrier[1])
    os.close(order["directory"])
    return child, problem


class _Child:
    """A process between the launcher and the command. `problems` closes when the command starts."""

    def __init__(
        self,
        order: dict[str, Any],
        problems: int,
        new: int,
        maps: privileges.Maps,
        barrier: int,
        tracer: Tracer,
    ) -> None:
        self._order, self._problems, self._new, self._maps, self._barrier = order, problems, new, maps, barrier
        self._tracer = tracer

    def run(self, launcher: int) -> NoReturn:
        """Confine this process and become the command, or its keeper."""
        try:
            os.setsid()
            os.close(self._order["control"])
            if self._order["bwrap"]:
                self._become_bubblewrap(launcher)
            if self._order["landlock"]:
                self._keep(launcher)
            _die_with(launcher, signal.SIGKILL)
            os.fchdir(self._order["directory"])
            self._execute()
        except OSError as error:
            os.write(self._problems, _told(error))
        os._exit(127)

    def _become_bubblewrap(self, launcher: int) -> None:
        order = self._order
        words = [*order["bwrap"][1:], "--clearenv"]
        for name, value in order["env"].items():
            words += ["--setenv", name, value]
        kept = [os.dup(self._barrier)]
        os.set_inheritable(kept[0], True)
        if self._new:
            privileges.enter(order["drop"]["owned"], order["drop"]["needed"], self._maps)
            kept.append(_held("\n".join(privileges.users(self._new)).encode()))
            words += ["--ro-bind-data", str(kept[-1]), "/etc/passwd"]
        if seccomp.is_possible():
            kept.append(_held(seccomp.program(internet=True, shared_memory=True)))
            words += ["--seccomp", str(kept[-1])]
        words += ["--file", str(kept[0]), "/run/.plans"]
        kept.append(_held(b"".join(os.fsencode(word) + b"\0" for word in words)))
        if self._new:
            privileges.become(self._new, for_good=False)
        _die_with(launcher, signal.SIGKILL)
        if "--unshare-net" not in words:
            _enclose_sockets(order["bwrap"][0])
        self._tracer.install()
        _close_all_but(kept, self._problems)
        self._limit()
        command = [order["bwrap"][0], "--args", str(kept[-1]), "--", *order["command"]]
        _default_signals()
        os.execve(command[0], command, CONSTANT)  # noqa: S606

    def _keep(self, launcher: int) -> NoReturn:
        """Be the keeper of the command, and exit with its exit code."""
        ends_all = False
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(END, lambda *_: os._exit(_ended(ends_all)))
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # a child subreaper
        if self._new:
            privileges.enter(self._order["drop"]["owned"], self._order["drop"]["needed"], self._maps, alone=True)
            ends_all = os.getpid() == 1
        elif landlock.abi() >= landlock.SIGNALS:
            landlock.enclose_signals()
            ends_all = _is_enclosed(launcher)
        _die_with(0 if self._new else launcher, END)
        command = os.fork()
        if not command:
            self._become_command()
        self._tracer.leave()
        os.close(self._problems)
        os.close(self._order["directory"])
        while True:
            process, status = os.waitpid(-1, 0)
            if process == command:
                _ended(ends_all)
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)

    def _become_command(self) -> NoReturn:
        order, rule = self._order, self._order["landlock"]
        try:
            self._go_to_directory()
            landlock.restrict(rule["writable"], rule["readable"], rule["network"])
            if self._new:
                privileges.become(self._new, for_good=True)
            self._execute(seccomp.program(internet=rule["network"], shared_memory=bool(self._new)), order["landlock"])
        except OSError as error:
            os.write(self._problems, _told(error))
        os._exit(127)

    def _go_to_directory(self) -> None:
        """Enter the directory as it is mounted now; it must still be the one that the worker opened."""
        if not self._new:
            return os.fchdir(self._order["directory"])
        wanted = os.fstat(self._order["directory"])
        os.chdir(self._order["cwd"])
        found = os.stat(".")
        if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
            raise OSError(2, f"{self._order['cwd']} was moved or replaced")
        return None

    def _execute(self, filter_: bytes = b"", confined: object = None) -> None:
        """Become the command. Its failure to start is reported as a shell would, with exit code 127 or 126."""
        command = self._order["command"]
        self._tracer.install()
        _close_all_but([], self._problems)
        self._limit()
        _default_signals()
        if confined and filter_:
            seccomp.give_up(filter_)
        try:
            os.execve(command[0], command, self._order["env"])  # noqa: S606
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)

    def _limit(self) -> None:
        limits = self._order["limits"]
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: limits.get("open_files") or MAX_OPEN_FILES,
            resource.RLIMIT_CPU: limits.get("cpu"),
            resource.RLIMIT_FSIZE: limits.get("file"),
            resource.RLIMIT_AS: limits.get("memory"),
            resource.RLIMIT_NPROC: _most_processes(limits.get("processes"), alone=bool(self._new)),
        }
        for kind, limit in wanted.items():
            if limit is not None:
                _, most = resource.getrlimit(kind)
                most = 2**62 if most == resource.RLIM_INFINITY else most
                soft = min(limit, most)
                # The hard limit is one second later, so that SIGXCPU arrives first and shows the reason.
                hard = {resource.RLIMIT_NOFILE: most, resource.RLIMIT_CPU: min(soft + 1, most)}.get(kind, soft)
                resource.setrlimit(kind, (soft, hard))


def _most_processes(limit: int | None, *, alone: bool) -> int | None:
    """The kernel's limit: above ours, so that the watch sees an excess, and counting the user's other processes."""
    if limit is None:
        return None
    return min(4 * limit + (64 if alone else on_host()), 2**31 - 1)


def _ended(all_: bool) -> int:
    """End all processes of this keeper, if it can reach no others; returns 137."""
    if all_:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    return 128 + signal.SIGKILL


def _enclose_sockets(bwrap: str) -> None:
    """Keep the host's abstract Unix sockets from a command that shares its network, where the kernel can."""
    if landlock.abi() >= landlock.SIGNALS and not privileges.is_set_user_id(bwrap):
        landlock.enclose_sockets()


def _is_enclosed(launcher: int) -> bool:
    """Whether this process cannot signal processes outside its domain: tried on the launcher, which is of its user."""
    try:
        os.kill(launcher, 0)
    except PermissionError:
        return os.getuid() != 0
    return False


def _die_with(launcher: int, number: int) -> None:
    """Receive a signal when the launcher dies; 0: its pid is of another namespace."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(127)


def _default_signals() -> None:
    for number in _DEFAULT:  # Python and the launcher changed these, and the command would inherit what is ignored
        signal.signal(number, signal.SIG_DFL)


def _give_pipes(new: int) -> None:
    """Make output and error the new user's, so that it can open /dev/stdout."""
    for descriptor in (1, 2):
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.fchown(descriptor, new, new)


def _unshare_processes() -> None:
    """Put the next child into a new PID namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(privileges.NEW_PROCESSES):
        raise OSError(ctypes.get_errno(), "a PID namespace cannot be made")


def _held(content: bytes) -> int:
    """A descriptor that the next program inherits, from which it reads this."""
    descriptor = os.memfd_create("plans", 0)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _close_all_but(kept: list[int], problems: int) -> None:
    """Close every descriptor but the standard ones, these, and that for problems, which the next program closes."""
    first = 3
    for descriptor in sorted([*kept, problems]):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, max(65_536, first))


def _told(error: OSError) -> bytes:
    return f"the sandbox cannot be set up: {error.strerror or error}".encode("utf-8", "replace")

"""Records which names below the workspace a command's processes create, change, rename and remove. Standard library.

Runs in the launcher: a thread answers each reported system call with "go on", after it has written the call's paths to
the trace file, so that a change never precedes its record. This is bookkeeping, not a defence: a program can change a
path in its memory between the record and the call. What cannot be followed makes the trace incomplete, which is
recorded too. A command never waits long: a report that takes more than STUCK_SECONDS is let go on (`look_after`).

Rejected: fanotify and eBPF (root), an overlay per command (merges), ptrace (halves the speed of everything).
"""

from __future__ import annotations

import _socket
import _thread
import errno
import fcntl
import select
import struct
import time
from contextlib import suppress

from plansurvive.activities.tracing import filter
from plansurvive.activities.tracing.names import Names
from plansurvive.activities.tracing.trace_file import BEGAN, ENDED, TraceFile

STUCK_SECONDS = 2.0
END_SECONDS = 2.0
_RECEIVE, _SEND, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_SAME_CPU = 1
"""SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, since 6.6: a report takes a fraction of the time."""
_REPORT = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags, then struct seccomp_data: number, architecture, instruction, arguments."""
_CONTINUE = 1
_FAILS_ANYWAY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)
"""The call itself will fail with the same error, so it changes nothing."""


class Tracer:
    """The trace of one command. With an empty `file` nothing is traced, and no method has an effect.

    Make it before the launcher's first fork and before it enters a PID namespace: no thread can be started afterwards.
    """

    def __init__(self, file: str, workspace: str, *, at_once: bool, no_new_privileges: bool) -> None:
        """`at_once`: record from the first call on; otherwise after `begin` (what sets up a sandbox is no change)."""
        self._privileges, self._there = no_new_privileges, None
        self._answers: Answers | None = None
        if not file or not filter.is_possible():
            return
        with suppress(OSError):
            here, self._there = _socket.socketpair()
            self._answers = Answers(here, TraceFile(file, workspace), at_once)
            _thread.start_new_thread(self._answers.record, ())
            _thread.start_new_thread(self._answers.stand_in, ())

    def install(self) -> None:
        """In the process that becomes the command: be traced from here on, and give the launcher the listener."""
        if self._there is None:
            return
        try:
            listener = filter.install(no_new_privileges=self._privileges)
        except OSError:
            return  # the launcher sees the end of the socket
        self._there.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])

    def leave(self) -> None:
        """In every other process: close its end of the socket."""
        if self._there is not None:
            self._there.close()
            self._there = None

    def begin(self) -> None:
        """The command begins now: record what it changes."""
        if self._answers:
            self._answers.recording = True

    def look_after(self) -> None:
        """Let a report that takes too long go on."""
        if self._answers:
            self._answers.look_after()

    def finish(self) -> None:
        """All processes have ended: the trace is whole, unless some are still there."""
        if self._answers:
            self._answers.finish()


class Answers:
    """Answers the reports of one command, in a thread of the launcher."""

    def __init__(self, here: _socket.socket, file: TraceFile, at_once: bool) -> None:
        self.recording, self._here, self._file = at_once, here, file
        self._listener, self._busy = -1, (0.0, 0)
        self._stuck = _thread.allocate_lock()
        self._stuck.acquire()
        self._names = Names(file)

    def record(self) -> None:
        """Answer every report after it is recorded. Waits for the listener first, which may not come."""
        _, held, _, _ = self._here.recvmsg(1, _socket.CMSG_SPACE(4))
        self._here.close()
        if held and held[0][1] == _socket.SCM_RIGHTS:
            self._listener = struct.unpack("i", held[0][2][:4])[0]
            self._file.write(BEGAN)
            with suppress(OSError):
                fcntl.ioctl(self._listener, _SET_FLAGS, _SAME_CPU)
            self._answer(recording=True)

    def stand_in(self) -> None:
        """Answer every report unseen, once the first thread is stuck: this cannot get stuck."""
        self._stuck.acquire()
        self._answer(recording=False)

    def look_after(self) -> None:
        """Let a report that takes too long go on; from then on `stand_in` answers, and nothing more is written."""
        since, report = self._busy
        if since and time.monotonic() - since > STUCK_SECONDS and self._stuck.locked():
            self._file.is_whole = False
            self._stuck.release()
            self._let_go(report)

    def finish(self) -> None:
        """Mark the trace as whole when no process is left that could be reported."""
        if self._listener >= 0 and self._stuck.locked() and self._is_over(END_SECONDS):
            self._file.write(ENDED)

    def _answer(self, *, recording: bool) -> None:
        architecture = filter.architecture()
        buffer, empty = bytearray(_REPORT.size), bytes(_REPORT.size)
        while True:
            buffer[:] = empty
            try:
                fcntl.ioctl(self._listener, _RECEIVE, buffer)
            except OSError:  # also when the process is killed that made the call
                if self._is_over(0):
                    return
                continue
            report, process, _, number, found, _, *arguments = _REPORT.unpack(buffer)
            if recording and self.recording and self._file.is_whole:
                self._busy = (time.monotonic(), report)
                self._look_at(report, process, number if found == architecture else -1, arguments)
                self._busy = (0.0, 0)
            self._let_go(report)

    def _let_go(self, report: int) -> None:
        with suppress(OSError):  # the process has been killed meanwhile, or `look_after` was faster
            fcntl.ioctl(self._listener, _SEND, struct.pack("=QqiI", report, 0, 0, _CONTINUE))

    def _is_over(self, seconds: float) -> bool:
        """Whether no traced process is left."""
        waiting = select.poll()
        waiting.register(self._listener, 0)
        return any(event & (select.POLLHUP | select.POLLNVAL) for _, event in waiting.poll(seconds * 1_000))

    def _look_at(self, report: int, process: int, number: int, arguments: list[int]) -> None:
        try:
            self._names.record(process, number, arguments)
        except OSError as error:
            if error.errno not in _FAILS_ANYWAY and self._is_waiting(report):
                self._file.doubt()
        except Exception:  # whatever it is, the command must go on
            self._file.doubt()

    def _is_waiting(self, report: int) -> bool:
        """Whether the call still waits for its answer: its process has not been killed."""
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", report))
        except OSError:
            return False
        return True

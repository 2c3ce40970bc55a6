"""Daemon processes tracked by a PID file (pid and start time, so that a reused pid is not mistaken for ours).

`start` runs a command in its own session with a log file; `stop` sends SIGTERM, waits, then sends SIGKILL.

A record holds ticks since boot and not psutil's wall-clock start, which moves when the clock is set.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import until

TAIL_BYTES = 4_000


class Process(BaseModel):
    """A process on this machine, as its PID file records it. Subclasses add fields."""

    model_config = ConfigDict(frozen=True)

    pid: int
    began: str
    """Its start time, as `began` returns it."""

    def is_alive(self) -> bool:
        """Whether this process (not another one with its pid) is still running; a zombie is not."""
        return began(self.pid) == self.began

    async def stop(self, grace: float) -> None:
        """Send SIGTERM, wait up to `grace` seconds, then send SIGKILL. Does nothing if the process has ended."""
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
            if not self.is_alive():
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            with suppress(TimeoutError):
                await until(self._is_gone, patience)

    def _is_gone(self) -> bool:
        if self.is_alive():
            return False
        with suppress(ChildProcessError):  # reap the zombie if it is our child
            os.waitpid(self.pid, os.WNOHANG)
        return True

    def write(self, file: Path) -> None:
        """Write the PID file atomically, readable by this user only."""
        write_whole(
            file, self.model_dump_json(indent=2).encode(), durable=False
        )  # the process would not survive a crash either

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """The recorded process if it is running; None otherwise, or if the PID file is missing or damaged."""
        record = cls.last(file)
        return record if record and record.is_alive() else None

    @classmethod
    def last(cls, file: Path) -> Self | None:
        """The recorded process, running or not; None if the PID file is missing or damaged."""
        try:
            return cls.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return None


def began(pid: int) -> str | None:
    """Start time of a process, as text for comparison; None if there is no such process, or only a zombie."""
    import psutil  # only some commands look at processes

    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        created = process.create_time()
    except psutil.Error:
        return None
    if not psutil.LINUX:
        return str(created)
    # psutil adds the boot time, which moves when the clock is set: count the ticks since then, which do not.
    return str(round((created - psutil.boot_time()) * os.sysconf("SC_CLK_TCK")))


def start(
    command: Sequence[str],
    log: Path,
    environ: Mapping[str, str],
    keep_open: Sequence[int] = (),
    umask: int = -1,
) -> tuple[int, str]:
    """Start a command in its own session with a new log file; returns its pid and start time (see `began`).

    `umask`: that of the process; -1: this one's.
    """
    if log.exists():
        log.replace(log.with_suffix(".old.log"))
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env=dict(environ),
            pass_fds=keep_open,
            start_new_session=True,
            umask=umask,
        )
    process.returncode = 0  # it is meant to outlive us: prevents the ResourceWarning when the object is freed
    return process.pid, began(process.pid) or "ended at once"


def log_end(log: Path) -> str:
    """The end of a log file as the end of a message; of an empty one, what to do instead of reading it."""
    written = tail(log)
    if not written:
        return f"Its log, {log}, is empty: a busy machine may take longer, so try again."
    return f"The end of its log, {log}:\n{written}"


def tail(log: Path) -> str:
    """The last TAIL_BYTES of a log file, for a message; empty if it does not exist."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
    return ""

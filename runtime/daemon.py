"""Processes that outlive the command that started them, each known by a record on disk.

A record holds the process id together with the moment the process began: an id alone may long belong to somebody else.
`start` gives the process a session of its own and a log file; `stop` asks (SIGTERM), waits, and insists (SIGKILL).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from runtime.atomic_file import write_whole
from runtime.wait import until

TAIL_BYTES = 4_000


class Process(BaseModel):
    """One process of this machine. Kinds of processes add what else must be known of them."""

    model_config = ConfigDict(frozen=True)

    pid: int
    began: str
    """Moment the process began, as the system tells it; see `began`."""

    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return began(self.pid) == self.began

    async def stop(self, grace: float) -> None:
        """Ask the process to end, wait up to `grace` seconds, then kill it. Nothing happens if it is gone."""
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
        with suppress(ChildProcessError):  # a child of ours has left a zombie to collect
            os.waitpid(self.pid, os.WNOHANG)
        return True

    def write(self, file: Path) -> None:
        """Keep the record: all of it or none, readable by this user only."""
        write_whole(file, self.model_dump_json(indent=2).encode(), durable=False)  # no process survives a crash

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """The recorded process if it is alive; a missing, damaged or outdated record counts as none."""
        try:
            record = cls.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return None
        return record if record.is_alive() else None


def began(pid: int) -> str | None:
    """The moment a process began, as text to compare; None when there is no such process, or only a zombie."""
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
) -> tuple[int, str]:
    """Start a command in a session of its own with a fresh log; returns its process id and its beginning."""
    if log.exists():
        log.replace(log.with_suffix(".old.log"))
    with log.open("xb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env=dict(environ),
            pass_fds=keep_open,
            start_new_session=True,
        )
    process.returncode = 0  # it is meant to outlive us: no warning when the object goes
    return process.pid, began(process.pid) or "ended at once"


def tail(log: Path) -> str:
    """The end of a log file, for a message; empty when there is none."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
    return ""

"""Processes that outlive the command that started them, each known by a record on disk.

A record holds the process id together with the moment the process began: an id alone may long belong to somebody else.
`start` gives the process a session of its own and a log file; `stop` asks (SIGTERM), waits, and insists (SIGKILL).
`lock` lets one command at a time decide whether something must be started.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

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
        """Ask the process to end, wait up to `grace` seconds, then end it. Nothing happens if it is gone."""
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
            if not self.is_alive():
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            await self._wait(patience)

    async def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < deadline:
            with suppress(ChildProcessError):  # only a child of ours has a zombie to collect
                os.waitpid(self.pid, os.WNOHANG)
            await asyncio.sleep(0.05)

    def write(self, file: Path) -> None:
        """Keep the record: all of it or none, readable by this user only."""
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        fresh.write_text(self.model_dump_json(indent=2))
        fresh.chmod(0o600)
        fresh.replace(file)

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """The recorded process if it is alive; a missing, damaged or outdated record counts as none."""
        try:
            record = cls.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return None
        return record if record.is_alive() else None


def began(pid: int) -> str | None:
    """The moment a process began, as text to compare; None when there is no such process, or a zombie only."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _began_without_proc(pid)
    return None if fields[0] in "ZX" else fields[19]


def _began_without_proc(pid: int) -> str | None:
    found = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, moment = found.stdout.strip().partition(" ")
    return moment.strip() if moment and not state.startswith("Z") else None


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


@asynccontextmanager
async def lock(file: Path) -> AsyncIterator[None]:
    """Hold the lock file; waits for whoever holds it. The system frees it when a process dies."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await take_lock(handle)
        yield
    finally:
        os.close(handle)


async def take_lock(handle: int, seconds: float = math.inf) -> bool:
    """Take an exclusive lock on an open file; False when somebody else still has it after so many seconds."""
    deadline = time.monotonic() + seconds
    while not _try_lock(handle):
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.05)
    return True


def _try_lock(handle: int) -> bool:
    """Take an exclusive lock on an open file if nobody has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

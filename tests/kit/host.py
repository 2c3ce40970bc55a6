"""Processes of this host and how they ended; a command in a sandbox has other process ids inside."""

from __future__ import annotations

import signal
import uuid
from contextlib import suppress
from pathlib import Path

FATAL = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def a_nap() -> str:
    """A command that takes long, and that nobody else on this host runs."""
    return f"sleep 300.{uuid.uuid4().int}"


def running(command: str) -> list[str]:
    """The processes of this host that run a command."""
    wanted, found = command.encode().replace(b" ", b"\0") + b"\0", []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "cmdline").read_bytes() == wanted:
                found.append(folder.name)
    return found


def has_crashed(code: int | None) -> bool:
    """Whether a process ended by an abort or a fault of memory, itself or the program that a shell started for it."""
    return code is not None and (-code in FATAL or code - 128 in FATAL)

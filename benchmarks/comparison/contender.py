"""What is compared: something that runs graphs, waits for people, can be killed, and is started again."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from benchmarks.graphs import Steps


@dataclass(frozen=True)
class Cost:
    """Of one measured run: seconds of wall time, and of CPU of all processes that took part."""

    wall: float
    cpu: float


class Contender(Protocol):
    """One engine with one set of settings, in a folder of its own.

    Methods raise RuntimeError with what the engine said, or TimeoutError.
    """

    engine: str
    """Its name and version; known once it has started."""
    state: str
    """Where it keeps its state, and the setting that decides how durably."""
    has_server: bool
    """Whether something besides the process with the steps can be killed."""

    async def start(self) -> None:
        """Start the server, if there is one, and the process with the steps."""

    async def stop(self) -> None:
        """Stop both."""

    @property
    def pids(self) -> list[int]:
        """The process with the steps."""

    @property
    def server_pids(self) -> list[int]:
        """The server or database, if there is one."""

    async def run(self, name: str, workload: list[Steps], *, in_turn: bool = False) -> Cost:
        """Run graphs to their end, at the same time or one after the other."""

    async def begin(self, name: str, steps: Steps) -> None:
        """Start a graph and return at once."""

    async def kill(self, *, everything: bool) -> None:
        """Kill the process with the steps (SIGKILL); `everything`: at the same time the server too."""

    async def restart(self, *, everything: bool) -> None:
        """Start again what was killed, as it was started at first."""

    async def resume(self, name: str, steps: Steps) -> None:
        """What a person or a program of theirs has to do to continue the run, by the documentation."""

    async def result(self, name: str, steps: Steps) -> int:
        """Wait until the run has ended; the number of steps that the engine knows as done."""

    def ledger(self, file: str) -> Path:
        """Where steps write this ledger."""

    async def wait(self, name: str, runs: int) -> None:
        """Start runs of one step that wait for an answer from outside first; returns when all wait."""

    async def answer(self, name: str, runs: int) -> None:
        """Give the first `runs` of these their answer."""

    async def ended(self, name: str, runs: int) -> int:
        """How many of the first `runs` of these have ended by now, with their step done."""


def cpu_of(pids: Iterable[int]) -> float:
    """Seconds of CPU that these processes, their children, and children that have ended used so far."""
    total = 0.0
    for process in _trees(pids):
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def memory_of(pids: Iterable[int]) -> int:
    """Bytes of memory that these processes and their children hold; what they share counts once."""
    total = 0
    for process in _trees(pids):
        with suppress(psutil.Error):
            held = process.memory_full_info()
            total += getattr(held, "pss", held.uss)
    return total


def kill_trees(pids: Iterable[int]) -> None:
    """SIGKILL to these processes and all their children: stopped first, so that none starts another or cleans up.

    Returns when they are gone; whoever started them collects their exit codes.
    """
    found = _trees(pids)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in found:
            with suppress(psutil.Error, ProcessLookupError):
                process.send_signal(number)
    ends = time.monotonic() + 10
    while time.monotonic() < ends and any(map(_lives, found)):
        time.sleep(0.01)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _trees(pids: Iterable[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
    return found

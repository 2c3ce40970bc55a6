"""Runs that wait for an answer from outside: what they cost meanwhile, and whether they go on after a kill.

Some of them get their answer once all processes were killed and started again; what has not ended then is counted.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from benchmarks.comparison.contender import Contender, cpu_of, memory_of

PATIENCE = 180.0
SETTLE = 3.0
"""Seconds after which a process that was started has nothing more to do."""


@dataclass(frozen=True)
class Waited:
    """What the runs of one engine came to."""

    memory: float
    """Bytes for each run in the process with the steps."""
    server_memory: float
    """Bytes for each run in its server or database."""
    idle: float
    """Cores in use by all processes before there was any run."""
    busy: float
    """The same while all runs wait."""
    answered: int
    """Runs that were given their answer after the kill."""
    ended: int
    """Of those, runs that ended."""
    seconds: float
    """From the answers to the last end."""
    error: str = ""


async def waited(
    contender: Contender, runs: int, answers: int, *, seconds: float, settle: float, patience: float = PATIENCE
) -> Waited:
    """Start runs that wait, kill everything, start it again, and answer the first `answers` of them.

    `seconds`: how long CPU is measured. `settle`: seconds after which the engine holds no more than it has to.
    Raises RuntimeError or TimeoutError if the engine cannot even wait.
    """
    await asyncio.sleep(min(SETTLE, settle))
    idle = await _cores(contender, seconds)
    await contender.wait("early", max(1, runs // 10))  # what is loaded or cached once is no cost of each run
    await asyncio.sleep(settle)
    before = [memory_of(pids) for pids in (contender.pids, contender.server_pids)]
    await contender.wait("runs", runs)
    await asyncio.sleep(settle)
    after = [memory_of(pids) for pids in (contender.pids, contender.server_pids)]
    busy = await _cores(contender, seconds)
    everything = contender.has_server
    await contender.kill(everything=everything)
    await contender.restart(everything=everything)
    began, ended, error = time.perf_counter(), 0, ""
    try:
        async with asyncio.timeout(patience):
            await contender.answer("runs", answers)
            while (ended := await contender.ended("runs", answers)) < answers:
                await asyncio.sleep(0.1)
    except (RuntimeError, TimeoutError, OSError) as problem:
        error = str(problem) or f"did not end in {patience:.0f} s"
    memory, server_memory = ((held - free) / runs for free, held in zip(before, after, strict=True))
    return Waited(memory, server_memory, idle, busy, answers, ended, time.perf_counter() - began, error)


async def _cores(contender: Contender, seconds: float) -> float:
    """What all processes use, averaged over some seconds."""
    pids = [*contender.pids, *contender.server_pids]
    before, began = cpu_of(pids), time.perf_counter()
    await asyncio.sleep(seconds)
    return (cpu_of(pids) - before) / (time.perf_counter() - began)

"""Shared by the scripts: requests from standard input, answers to standard output, a JSON text per line.

    {"do": "run", "name": NAME, "graphs": [STEPS, ...]}     run graphs at the same time: {"seconds": S, "done": N}
                                       "inTurn": true       one after the other
    {"do": "resume", "name": NAME, "steps": STEPS}          do what it takes by hand to continue a run: {}
    {"do": "result", "name": NAME, "steps": STEPS}          wait until the run has ended: {"done": N}
    {"do": "wait", "name": NAME, "runs": N}                 start runs that wait for an answer, until all wait: {}
    {"do": "answer", "name": NAME, "runs": N}               give the first of them their answer: {}
    {"do": "ended", "name": NAME, "runs": N}                how many of the first have ended by now: {"ended": N}

The first answer, `{"ready": VERSION}`, says that the process has started. What fails is `{"error": TEXT}`. Uses only
the standard library, because it runs in other libraries' virtual environments.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Steps = list[dict[str, Any]]
Call = dict[str, Any]
ASKED: Call = {"id": "s0", "number": 1}
"""The one step of a run that waits: it follows the answer."""
AT_ONCE = 10
"""Runs that begin to wait, or get their answer, at the same time."""


@dataclass(frozen=True)
class Waits:
    """A run that waits for an answer from outside, as the library's documentation has it for a person's decision."""

    wait: Callable[[str], Awaitable[None]]
    """Start a run under a name; returns once it waits."""
    answer: Callable[[str], Awaitable[None]]
    """Give it its answer, in this process or in one that was started after this one was killed."""
    ended: Callable[[str], Awaitable[bool]]
    """Whether it has ended, with its step done."""


@dataclass(frozen=True)
class Engine:
    """What a script offers."""

    library: str
    run: Callable[[Steps, str], Awaitable[int]]
    """Run a graph under a name; returns the number of steps done."""
    resume: Callable[[Steps, str], Awaitable[None]]
    """Make a run continue whose process was killed; does nothing where the library does so itself."""
    result: Callable[[Steps, str], Awaitable[int]]
    """Wait until a run has ended; returns the number of steps done, as the library recorded it."""
    waits: Waits


def call_of(step: dict[str, Any]) -> Call:
    """The argument of a step's function."""
    return {"id": step["id"], **step["args"]}


async def perform(call: Call) -> int:
    """What a step does: nothing, or sleep between two lines of a ledger."""
    if "ledger" in call:
        _write(call["ledger"], f"start {call['id']}")
        await asyncio.sleep(call["seconds"])
        _write(call["ledger"], f"end {call['id']}")
    return int(call.get("number", 1))


def perform_in_thread(call: Call) -> int:
    """The same in a thread."""
    if "ledger" in call:
        _write(call["ledger"], f"start {call['id']}")
        time.sleep(call["seconds"])
        _write(call["ledger"], f"end {call['id']}")
    return int(call.get("number", 1))


async def serve(engine: Engine) -> None:
    """Answer requests until standard input ends."""
    _say({"ready": f"{engine.library} {importlib.metadata.version(engine.library)}"})
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        try:
            _say(await _answer(engine, request))
        except Exception as error:
            _say({"error": f"{type(error).__name__}: {error}"[:500]})


async def _answer(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    do, name = request["do"], request["name"]
    if do == "run":
        began = time.perf_counter()
        runs = [engine.run(steps, f"{name}-{index}") for index, steps in enumerate(request["graphs"])]
        done = [await run for run in runs] if request.get("inTurn") else await asyncio.gather(*runs)
        return {"seconds": time.perf_counter() - began, "done": sum(done)}
    if do == "ended":
        return {"ended": sum(await _each(engine.waits.ended, name, request["runs"]))}
    if do in ("wait", "answer"):
        await _each(engine.waits.wait if do == "wait" else engine.waits.answer, name, request["runs"])
        return {}
    name, steps = f"{name}-0", request["steps"]
    if do == "resume":
        await engine.resume(steps, name)
        return {}
    return {"done": await engine.result(steps, name)}


async def _each(function: Callable[[str], Awaitable[T]], name: str, runs: int) -> list[T]:
    """Call it with the name of each run, some at the same time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(index: int) -> T:
        async with turn:
            return await function(f"{name}-{index}")

    return await asyncio.gather(*map(one, range(runs)))


def _write(file: str, line: str) -> None:
    ledger = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(ledger, f"{line}\n".encode())
    finally:
        os.close(ledger)


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)

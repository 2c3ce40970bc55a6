"""Runs one cell and judges it."""

from __future__ import annotations

import fcntl
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.attack import Case
from tests.attacks.ground import Ground, ground
from tests.attacks.workers import WorkerSide

WORDS = {"off": "none", "landlock": "landlock", "bwrap": "bwrap"}
"""Each level as the sandbox names it."""

CONTROL_SECONDS = 20.0


@dataclass(frozen=True)
class Result:
    """What was measured in one cell."""

    escaped: bool
    said: str
    """What came back from the worker, for whoever reads a failure."""


def measure(case: Case, worker: WorkerSide) -> Result:
    """Run the attack of one cell, judged from outside."""
    with _judged(case, worker) as (laid, escaped):
        answer = worker.answer(laid, case)
        assert answer["level"] == WORDS[case.level], f"the worker has level {answer['level']!r}: {answer['text']}"
        assert answer["code"] != "FAULT", answer["text"]
        laid.said = json.dumps(answer)
        return Result(escaped(), laid.said[:4_000])


def measure_without_launcher(case: Case, worker: WorkerSide) -> Result:
    """Run the control of a spelling that is held at every level, as a plain process of the user."""
    with _judged(case, worker) as (laid, escaped):
        laid.said = laid.run(case.spelling.control)
        until = time.monotonic() + CONTROL_SECONDS
        while not (found := escaped()) and time.monotonic() < until:  # a shell does not wait for what it starts
            time.sleep(0.02)
        return Result(found, laid.said)


@contextmanager
def _judged(case: Case, worker: WorkerSide) -> Iterator[tuple[Ground, Callable[[], bool]]]:
    """The ground as the attack finds it, and the verdict of the judge, who looks from now on."""
    with ground(worker.uid) as laid, _alone(case):
        if case.spelling.prepare:
            case.spelling.prepare(laid)
            laid.own(laid.home)
        with (case.spelling.judge or case.attack.judge)(laid) as escaped:
            yield laid, escaped


@contextmanager
def _alone(case: Case) -> Iterator[None]:
    """Hold the lock of what all processes of the host share, if the attack is about that."""
    if not case.attack.alone:
        yield
        return
    with Path(tempfile.gettempdir(), "plans-attacks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""Faults for a worker, and the worker that has one: it dies as by kill -9, or freezes, at a point inside a tool.

    python -m tests.chaos.faults edit_file:after_swap kill      # or any tool: after_swap; `stop` freezes

Otherwise it is a worker like any other, with settings from its environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable

from temporalio import activity

from plansurvive.runtime.settings import Settings
from plansurvive.worker import serve

POINTS = ("before_lock", "before_effect", "after_temporary", "after_intent", "after_swap", "after_effect", "after_done")
"""In the order in which a change of a file passes them."""
Fault = Callable[[str], None]


def killed_at(where: str) -> Fault:
    """kill -9 at `point` or `tool:point`. Only a step's first attempt dies: what follows shows what became of it."""
    return _at(where, lambda: os.kill(os.getpid(), signal.SIGKILL))


def frozen_at(where: str) -> Fault:
    """SIGSTOP there, until somebody lets the process go on, which it does as if nothing had been."""
    # A signal to the process might let this thread run on for a moment.
    return _at(where, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGSTOP))


def _at(where: str, act: Callable[[], None]) -> Fault:
    tool, _, wanted = where.rpartition(":")

    def fault(point: str) -> None:
        info = activity.info()
        if point == wanted and tool in ("", info.activity_type) and info.attempt == 1:
            act()

    return fault


def command(where: str, how: str) -> list[str]:
    """How a worker with this fault is started; `how` is kill or stop."""
    return [sys.executable, "-m", "tests.chaos.faults", where, how]


def main(where: str, how: str) -> None:
    """Serve until told to stop, or until the fault."""
    fault = {"kill": killed_at, "stop": frozen_at}[how](where)
    asyncio.run(serve(Settings.read(os.environ), fault=fault))
    sys.stdout.flush()
    os._exit(0)  # the SDK's threads do not always survive the end of the interpreter


if __name__ == "__main__":
    main(*sys.argv[1:])

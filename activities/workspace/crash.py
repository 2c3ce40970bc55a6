"""Named points at which a test may let the worker die, as if by kill -9, or freeze. Inert unless CRASH_AT names one.

CRASH_AT is `point` or `tool:point`; only a step's first attempt dies, so that what follows shows what became of it.
CRASH_BY=stop: it is stopped instead (SIGSTOP) until somebody lets it go on, which it does as if nothing had been.
"""

from __future__ import annotations

import os
import signal
import threading

POINTS = ("before_lock", "before_effect", "after_temporary", "after_intent", "after_swap", "after_effect", "after_done")
"""In the order in which a change of a file passes them."""


def crash(point: str, tool: str, *, again: bool) -> None:
    """Die here, if a test wants it."""
    if os.environ.get("CRASH_AT") in (point, f"{tool}:{point}") and not again:
        if os.environ.get("CRASH_BY") == "stop":
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # a signal to all might let this thread run on
        else:
            os.kill(os.getpid(), signal.SIGKILL)

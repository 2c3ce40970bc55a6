"""The lock under which servers start, one at a time on a machine.

Two that start at once would find the same ports free. The lock is an abstract Unix socket, on Linux only; like the
ports, it is per network namespace.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from plansurvive.runtime.base.wait import until

STARTING = "\0plans-embedded-server-starts"


@asynccontextmanager
async def start_lock(seconds: float) -> AsyncIterator[None]:
    """Hold the lock; without it after this many seconds."""
    with socket.socket(socket.AF_UNIX) as held:
        if sys.platform == "linux":
            with suppress(TimeoutError):
                await until(lambda: _has_bound(held), seconds)
        yield


def _has_bound(held: socket.socket) -> bool:
    try:
        held.bind(STARTING)
    except OSError:
        return False
    return True

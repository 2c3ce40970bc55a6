"""Waiting for a condition, with an end: what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from temporalio.client import Client
from temporalio.service import GrpcCompression

from plansurvive.runtime.connect import healthy, is_ready

PATIENCE = 240.0
"""Seconds until a condition that does not come true is a failure: far more than any takes on a machine that is busy."""
LONGEST_PAUSE = 5.0
"""Seconds between two looks, at most."""
_times = [1.0]


@contextmanager
def patient(times: float) -> Iterator[None]:
    """Within it, tests wait so many times as long for each condition."""
    _times.append(times)
    try:
        yield
    finally:
        _times.pop()


async def until(look: Callable[[], Any], what: str, *, patience: float = PATIENCE, every: float = 0.03) -> Any:
    """The first true thing `look` (async or not) returns. Raises AssertionError, saying `what` did not happen.

    Looking takes a third of the time, however slow it is: a query of an uncached workflow replays it, in a worker that
    has what is waited for to do as well.
    """
    patience *= _times[-1]
    deadline = time.monotonic() + patience
    while True:
        began = time.monotonic()
        seen = look()
        found = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        now = time.monotonic()
        assert now < deadline, f"not within {patience:g} s: {what}; last seen: {found!r}"
        await asyncio.sleep(max(every, min(2 * (now - began), LONGEST_PAUSE)))


async def connected(address: str, **options: Any) -> Client:
    """A client of a server that has just started: it listens before it is healthy and knows its namespace."""
    options = {"grpc_compression": GrpcCompression.NONE, **options}  # as our own clients do on this machine
    client = await healthy(PATIENCE * 2, target_host=address, **options)
    await until(lambda: is_ready(client), "the server knows the namespace")
    return client

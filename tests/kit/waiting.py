"""Waiting for a condition, with an end: what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

from temporalio.client import Client
from temporalio.service import GrpcCompression

from plansurvive.runtime.connect import healthy, is_ready

PATIENCE = 90.0
"""Seconds until a condition that does not come true is a failure: far more than any takes on a machine that is busy."""


async def until(look: Callable[[], Any], what: str, *, patience: float = PATIENCE, every: float = 0.03) -> Any:
    """The first true thing `look` (async or not) returns. Raises AssertionError, saying `what` did not happen."""
    deadline = time.monotonic() + patience
    while True:
        seen = look()
        found = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}; last seen: {found!r}"
        await asyncio.sleep(every)


async def connected(address: str, **options: Any) -> Client:
    """A client of a server that has just started: it listens before it is healthy and knows its namespace."""
    options = {"grpc_compression": GrpcCompression.NONE, **options}  # as our own clients do on this machine
    client = await healthy(PATIENCE * 2, target_host=address, **options)
    await until(lambda: is_ready(client), "the server knows the namespace")
    return client

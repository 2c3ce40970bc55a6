"""Waiting for a condition by polling: for what sends no event, such as other processes, files and servers."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def until(look: Callable[[], Awaitable[T]], seconds: float = ..., every: float = ...) -> T: ...


@overload
async def until(look: Callable[[], T], seconds: float = ..., every: float = ...) -> T: ...


async def until(look: Callable[[], Any], seconds: float = math.inf, every: float = 0.05) -> Any:
    """The first true value that `look` (async or not) returns.

    Raises TimeoutError when the last look after so many seconds is false as well, and whatever `look` raises. A look
    under way is not interrupted: put `asyncio.timeout` around where it may hang.
    """
    deadline = time.monotonic() + seconds
    while True:
        is_last = time.monotonic() >= deadline
        seen = look()
        found = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        if is_last:
            raise TimeoutError(f"not within {seconds:g} seconds")
        await asyncio.sleep(every)

"""Waiting for a condition for a limited time, alike on every version of Python.

`workflow.wait_condition` with a timeout is `asyncio.wait_for`, which wakes its task one turn of the event loop sooner
since Python 3.12. Where another part of a workflow waits for the same, their commands then come in another order, and a
worker on 3.12 cannot continue what one on 3.11 began, nor the reverse. A workflow in which only one part waits may use
`wait_condition` itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow


async def holds_within(condition: Callable[[], bool], timeout: timedelta | None) -> bool:
    """Wait until the condition holds, without a timeout for as long as it takes. False: it did not in that time."""
    if timeout is None:
        await workflow.wait_condition(condition)
        return True
    if not workflow.patched("waits-alike"):
        try:
            await workflow.wait_condition(condition, timeout=timeout)
        except TimeoutError:
            return False
        return True
    timer = asyncio.create_task(workflow.sleep(timeout))
    try:
        await workflow.wait_condition(lambda: timer.done() or condition())
        return not timer.done() or condition()
    finally:
        timer.cancel()

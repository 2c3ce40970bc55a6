"""Tools that do almost nothing, so that a step's time is the engine's; loaded as a user's own tools."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from plansurvive.activities.tools.tool import ToolContext, tool


@tool(effect="pure", quick=True)
async def noop(number: int) -> int:
    """Return a number.

    Args:
        number: The number.

    Returns:
        The same number.
    """
    return number


@tool(effect="pure")
async def make_text(size: int, mark: int = 0) -> str:
    """Return a text of a given length.

    Args:
        size: Length in characters.
        mark: A number at its start, to make texts differ.

    Returns:
        The text.
    """
    head = f"{mark:08d}"
    return head + "x" * (size - len(head))


@tool(effect="pure")
async def pass_text(text: str) -> str:
    """Return a text, so that a step has a large input and output.

    Args:
        text: Any text.

    Returns:
        The same text.
    """
    return text


@tool(effect="pure")
async def measure_text(text: str) -> int:
    """Count the characters of a text.

    Args:
        text: Any text.

    Returns:
        Its length.
    """
    return len(text)


@tool(effect="pure")
async def wait(seconds: float) -> float:
    """Sleep.

    Args:
        seconds: Duration.

    Returns:
        The time of day when it ended, in seconds.
    """
    await asyncio.sleep(seconds)
    return time.time()


@tool(effect="pure")
async def now() -> float:
    """Return the start time of the step's activity.

    Returns:
        The time of day in seconds.
    """
    return time.time()


@tool(effect="pure", timeout=3_600.0, touches_files=False)
async def task(seconds: float, ledger: str, context: ToolContext) -> float:
    """Write `start STEP` into a ledger, sleep, write `end STEP`.

    Args:
        seconds: Duration.
        ledger: A file in the workspace.

    Returns:
        The duration.
    """
    file = os.open(Path(context.workspace.root, ledger), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, f"start {context.call.step_id}\n".encode())
        await asyncio.sleep(seconds)
        os.write(file, f"end {context.call.step_id}\n".encode())
    finally:
        os.close(file)
    return seconds

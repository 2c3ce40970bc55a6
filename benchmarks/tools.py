"""Tools that do next to nothing, loaded as a user's own: what is left of a step's time is the engine's."""

from __future__ import annotations

import asyncio
import time

from activities.tools.tool import tool


@tool(effect="pure")
async def noop(number: int) -> int:
    """Give back a number.

    Args:
        number: The number.

    Returns:
        The same number.
    """
    return number


@tool(effect="pure")
async def make_text(size: int, mark: int = 0) -> str:
    """Give a text of some length.

    Args:
        size: Characters.
        mark: Makes the text differ from others.

    Returns:
        The text.
    """
    head = f"{mark:08d}"
    return head + "x" * (size - len(head))


@tool(effect="pure")
async def pass_text(text: str) -> str:
    """Give back a text, so that a step has to take in a value and give out as much.

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
    """Take some time.

    Args:
        seconds: How long.

    Returns:
        The time of day when it ended, in seconds.
    """
    await asyncio.sleep(seconds)
    return time.time()


@tool(effect="pure")
async def now() -> float:
    """Tell when the step's activity started.

    Returns:
        The time of day in seconds.
    """
    return time.time()

"""Quick tools for tests: one writes down its calls, one mixes values."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.plans.errors import ToolError

CALLS, TIMES = "calls", "times"
"""Files in the workspace: the names of the calls, and when each began, in seconds since 1970."""


def _noted(path: Path, name: str) -> int:
    with path.open("a") as calls:
        calls.write(f"{name}\n")
    with path.with_name(TIMES).open("a") as times:
        times.write(f"{time.time()}\n")
    return path.read_text().split().count(name)


@tool(effect="pure", quick=True)
async def tick(
    name: str, context: ToolContext, value: Any = None, seconds: float = 0.0, fails: int = 0, retryable: bool = True
) -> Any:
    """Write the name down.

    Args:
        name: What to write.
        value: What to give back; the name, if nothing is given.
        seconds: How long to wait.
        fails: So many calls fail before one succeeds.
        retryable: Whether a failed call is tried again.

    Returns:
        The value.
    """
    path = Path(context.workspace.root, CALLS)
    if _noted(path, name) <= fails:
        raise ToolError("BUSY", f"{name} fails", retryable=retryable)
    await asyncio.sleep(seconds)
    return name if value is None else value


@tool(effect="pure", quick=True)
async def mix(name: str, of: list[str]) -> str:
    """Mix a name and other values.

    Args:
        name: The name.
        of: The values.

    Returns:
        A digest of all of them.
    """
    return hashlib.sha256("\n".join([name, *of]).encode()).hexdigest()[:16]

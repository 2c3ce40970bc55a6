"""What tests ask about processes: which live, and wait until something holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.kit.waiting import PATIENCE


def alive(workspace: Path) -> list[int]:
    """Those of the process ids written to `pids` that still run; one that is dead but not collected does not."""
    file = workspace / "pids"
    return [pid for pid in map(int, file.read_text().split()) if is_running(pid)] if file.exists() else []


def is_running(pid: int) -> bool:
    """Whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)

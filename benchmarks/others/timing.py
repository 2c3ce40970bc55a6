"""What the scripts share: graphs come as JSON on standard input, seconds go as JSON to standard output.

Nothing here may need more than the standard library: it runs in the environment of another library.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

Steps = list[dict[str, Any]]


async def report(library: str, how: str, run: Callable[[Steps, str], Awaitable[int]]) -> None:
    """Run each graph as often as asked, after one round that does not count, and print what it took."""
    asked = json.load(sys.stdin)
    seconds: dict[str, list[float]] = {name: [] for name in asked["graphs"]}
    for turn in range(asked["repeats"] + 1):
        for name, steps in asked["graphs"].items():
            began = time.perf_counter()
            done = await run(steps, f"{name}-{turn}")
            took = time.perf_counter() - began
            if done != len(steps):
                raise RuntimeError(f"{library}: {done} of {len(steps)} steps of '{name}' are done")
            if turn:
                seconds[name].append(took)
    version = importlib.metadata.version(library)
    print(json.dumps({"library": f"{library} {version}", "how": how, "seconds": seconds}), flush=True)

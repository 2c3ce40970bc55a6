"""Shared by the scripts: reads graphs as JSON from standard input, writes durations as JSON to standard output.

Uses only the standard library, because it runs in other libraries' virtual environments.
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
    """Run each graph `repeats` times, after one warm-up round, and print the durations in seconds."""
    request = json.load(sys.stdin)
    seconds: dict[str, list[float]] = {name: [] for name in request["graphs"]}
    for turn in range(request["repeats"] + 1):
        for name, steps in request["graphs"].items():
            began = time.perf_counter()
            done = await run(steps, f"{name}-{turn}")
            took = time.perf_counter() - began
            if done != len(steps):
                raise RuntimeError(f"{library}: {done} of {len(steps)} steps of '{name}' are done")
            if turn:
                seconds[name].append(took)
    version = importlib.metadata.version(library)
    print(json.dumps({"library": f"{library} {version}", "how": how, "seconds": seconds}), flush=True)

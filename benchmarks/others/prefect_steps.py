"""Prefect with its own temporary server on SQLite: a task for each step, results stored on disk."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

os.environ |= {
    "PREFECT_HOME": sys.argv[1],
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
}

from prefect import flow, task  # type: ignore[import-not-found]

from benchmarks.others.timing import Steps, report


def _noop(number: int) -> int:
    return number


noop = task(_noop)


def _graph(steps: Steps) -> int:
    futures: dict[str, Any] = {}
    for step in steps:
        needs = [futures[name] for name in step["dependsOn"]]
        futures[step["id"]] = noop.submit(step["args"]["number"], wait_for=needs)
    return len([future.result() for future in futures.values()])


graph = flow(_graph)


async def run(steps: Steps, _: str) -> int:
    """Run a graph as one flow, in a thread: flow and tasks are synchronous."""
    return int(await asyncio.to_thread(graph, steps))


asyncio.run(report("prefect", "temporary server, SQLite, results kept", run))

"""DBOS on SQLite: a workflow whose steps are recorded individually; ready steps run concurrently, in waves."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

from benchmarks.others.timing import Steps, report


async def _noop(number: int) -> int:
    return number


async def _graph(steps: Steps) -> int:
    """Run in waves, so that steps are numbered the same in every replay, as DBOS requires."""
    done: dict[str, int] = {}
    waiting = steps
    while waiting:
        ready = [step for step in waiting if all(name in done for name in step["dependsOn"])]
        values = await asyncio.gather(*(noop(step["args"]["number"]) for step in ready))
        done.update({step["id"]: value for step, value in zip(ready, values, strict=True)})
        waiting = [step for step in waiting if step["id"] not in done]
    return len(done)


database = Path(sys.argv[1]) / "dbos.db"
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{database}", "log_level": "ERROR"})
noop: Any = DBOS.step()(_noop)
graph: Any = DBOS.workflow()(_graph)


async def run(steps: Steps, name: str) -> int:
    """Run a graph as one workflow."""
    with SetWorkflowID(name):
        return int(await graph(steps))


DBOS.launch()
asyncio.run(report("dbos", "SQLite", run))
DBOS.destroy()

"""DBOS: a workflow whose steps are recorded individually; ready steps run at the same time, in waves.

Arguments: folder, URL of the system database.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

from benchmarks.others.serving import Engine, Steps, call_of, perform, serve


async def _graph(steps: Steps) -> int:
    """Run in waves, so that steps are numbered the same in every replay, as DBOS requires."""
    done: dict[str, int] = {}
    waiting = steps
    while waiting:
        ready = [step for step in waiting if all(name in done for name in step["dependsOn"])]
        values = await asyncio.gather(*(step_function(call_of(step)) for step in ready))
        done.update({step["id"]: value for step, value in zip(ready, values, strict=True)})
        waiting = [step for step in waiting if step["id"] not in done]
    return len(done)


DBOS(
    config={
        "name": "bench",
        "system_database_url": sys.argv[2],
        "log_level": "ERROR",
    }
)
step_function: Any = DBOS.step()(perform)
graph: Any = DBOS.workflow()(_graph)


async def run(steps: Steps, name: str) -> int:
    """Run a graph as one workflow."""
    with SetWorkflowID(name):
        return int(await graph(steps))


async def resume(_: Steps, __: str) -> None:
    """Nothing: `DBOS.launch` continues the workflows of this executor."""


async def result(_: Steps, name: str) -> int:
    """Wait for a workflow."""
    return int(await (await DBOS.retrieve_workflow_async(name)).get_result())


DBOS.launch()
asyncio.run(serve(Engine("dbos", run, resume, result)))
DBOS.destroy()

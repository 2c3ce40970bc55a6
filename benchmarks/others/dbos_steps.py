"""DBOS: a workflow whose steps are recorded individually; ready steps run at the same time, in waves.

Arguments: folder, URL of the system database.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

from benchmarks.others.serving import ASKED, Call, Engine, Steps, Waits, call_of, perform, serve

A_WEEK = 7 * 24 * 3_600.0
waiting: set[str] = set()
"""Workflows that have begun to wait, in this process."""


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


async def _asks(call: Call) -> int:
    """Receive a message, however long it takes, then run the step."""
    waiting.add(DBOS.workflow_id)
    await DBOS.recv_async(timeout_seconds=A_WEEK)
    return int(await step_function(call))


DBOS(
    config={
        "name": "bench",
        "system_database_url": sys.argv[2],
        "log_level": "ERROR",
    }
)
step_function: Any = DBOS.step()(perform)
graph: Any = DBOS.workflow()(_graph)
asks: Any = DBOS.workflow()(_asks)


async def run(steps: Steps, name: str) -> int:
    """Run a graph as one workflow."""
    with SetWorkflowID(name):
        return int(await graph(steps))


async def resume(_: Steps, __: str) -> None:
    """Nothing: `DBOS.launch` continues the workflows of this executor."""


async def result(_: Steps, name: str) -> int:
    """Wait for a workflow."""
    return int(await (await DBOS.retrieve_workflow_async(name)).get_result())


async def wait(name: str) -> None:
    """Start a workflow, until it is about to receive."""
    with SetWorkflowID(name):
        await DBOS.start_workflow_async(asks, ASKED)
    while name not in waiting:
        await asyncio.sleep(0.01)


async def answer(name: str) -> None:
    """Send the message."""
    await DBOS.send_async(name, "yes")


async def ended(name: str) -> bool:
    """Whether the workflow has succeeded."""
    return bool((await DBOS.get_workflow_status_async(name)).status == "SUCCESS")


DBOS.launch()
asyncio.run(serve(Engine("dbos", run, resume, result, Waits(wait, answer, ended))))
DBOS.destroy()

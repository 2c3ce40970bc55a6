"""One worker process of a benchmark: `python -m benchmarks.serve plan|minimal`.

Settings come from PLANS_* and TEMPORAL_ADDRESS. Both kinds are the project's own worker with the same settings and
differ only in their workflow.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

from benchmarks.minimal import MinimalApprovals, MinimalLoop, MinimalWorkflow
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.workflow_types import AgentWorkflow, PlanWorkflow
from plansurvive.runtime import gc_tuning
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import Neighbours
from plansurvive.worker import build, identity

WORKFLOWS: dict[str, list[type]] = {
    "plan": [PlanWorkflow, AgentWorkflow],
    "minimal": [MinimalWorkflow, MinimalApprovals, MinimalLoop],
}


async def serve(kind: str) -> None:
    """Poll until SIGTERM."""
    settings = Settings.read(os.environ)
    client = await connect(settings)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    tools = load_tools(settings.tools)
    collector, neighbours = asyncio.create_task(gc_tuning.keep_small()), Neighbours()
    listening = build(client, settings, tools, indexed=True, workflows=WORKFLOWS[kind], neighbours=neighbours)
    looking = asyncio.create_task(neighbours.keep_looking(client, settings.task_queue, identity()))
    async with listening:
        print("listening", flush=True)
        await stopped.wait()
    looking.cancel()
    collector.cancel()


if __name__ == "__main__":
    gc_tuning.share_arenas()
    asyncio.run(serve(sys.argv[1]))
    gc.collect()
    sys.stdout.flush()
    os._exit(0)

"""Counts the workflow tasks that a worker's own code fails; until one succeeds, their plan does not go on.

The SDK counts them too, as `temporal_workflow_task_execution_failed` with the reason `WorkflowError`. With the same
reason it counts queries that a plan has left behind (sdk-core: `Query expired`). The server asks those again,
and nothing is wrong; a plan that many look at has some. An alert must not take one for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio.worker import Worker

_COMPLETE = "complete_workflow_activation"


def count(worker: Worker, failed: Callable[[], None]) -> None:
    """Call `failed` for each workflow task that the worker reports as failed by its code.

    What is asked for is private to the SDK: without it, nothing is counted.
    """
    bridge = vars(worker).get("_bridge_worker")
    complete = getattr(bridge, _COMPLETE, None)
    if bridge is None or complete is None:
        return

    async def counted(completion: Any) -> None:
        if completion.HasField("failed"):
            failed()
        await complete(completion)

    vars(bridge)[_COMPLETE] = counted

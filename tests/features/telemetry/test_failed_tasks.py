"""A workflow task that the worker's code fails is counted; one that succeeds, and a query that is refused, are not."""

from __future__ import annotations

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowQueryFailedError

from plansurvive.features.telemetry.failed_tasks import count
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build

failures: list[str] = []
"""Errors that the next tasks of the workflow end with."""


@workflow.defn(name="Faulty", sandboxed=False)
class Faulty:
    """Ends, once it has no error left to fail with."""

    @workflow.query
    def missing(self) -> str:
        """Refuse to answer."""
        raise ValueError("nothing there")

    @workflow.run
    async def run(self) -> str:
        """Fail or end."""
        if failures:
            raise RuntimeError(failures.pop())
        return "done"


async def test_tasks_that_the_code_of_a_worker_fails_are_counted(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    counted: list[int] = []
    worker = build(temporal_client, settings, {}, indexed=True, workflows=[Faulty])
    count(worker, lambda: counted.append(1))
    async with worker:
        for number, errors in enumerate(([], ["broken"])):
            failures[:] = errors
            handle = await temporal_client.start_workflow("Faulty", id=f"faulty-{number}-{queue}", task_queue=queue)
            assert await handle.result() == "done"
            with pytest.raises(WorkflowQueryFailedError):
                await handle.query("missing")
            assert len(counted) == number

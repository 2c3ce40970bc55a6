"""A plan in any state, for whoever asks a server about it: pages and commands read it as they read a running plan.

Its workflow does nothing but answer queries about a `Run` that the test has put there, so that states are shown which
no test can reach by running a plan, and hundreds of them in a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from plansurvive.plans.run import Run
from plansurvive.plans.views.queries import QUERIES
from plansurvive.runtime.storage import LocalDirectory, converter
from tests.kit.in_process import Server

QUEUE = "shown"


@workflow.defn(name="PlanWorkflow", sandboxed=False)
class ShownPlan:
    """Stands for the plan of its workflow id."""

    runs: ClassVar[dict[str, Run]] = {}
    """By workflow id."""

    @workflow.run
    async def run(self) -> None:
        """Stay."""
        await workflow.wait_condition(lambda: False)

    @workflow.query(dynamic=True)
    def answer(self, name: str, arguments: Sequence[RawValue]) -> Any:
        """What a plan in this state answers."""
        read = workflow.payload_converter().from_payload
        return QUERIES[name](self.runs[workflow.info().workflow_id], [read(each.payload) for each in arguments])


class Shown:
    """The plans of one test."""

    def __init__(self, client: Client, queue: str = QUEUE) -> None:
        self.client, self._queue = client, queue

    async def show(self, plan: str, run: Run) -> None:
        """From now on, the plan of this id is in the state of `run`."""
        name = f"plan-{plan}"
        if name not in ShownPlan.runs:
            await self.client.start_workflow("PlanWorkflow", id=name, task_queue=self._queue)
        ShownPlan.runs[name] = run


@asynccontextmanager
async def shown(values: Path) -> AsyncIterator[Shown]:
    """A server in this process with a worker that answers. `values`: an empty directory."""
    server = Server()
    client = server.client(converter(LocalDirectory(values)))
    try:
        async with Worker(client, task_queue=QUEUE, workflows=[ShownPlan]):
            yield Shown(client)
    finally:
        server.stop()
        ShownPlan.runs.clear()


@asynccontextmanager
async def shown_on(client: Client, queue: str) -> AsyncIterator[Shown]:
    """The same on a server, for commands, which connect to it."""
    try:
        async with Worker(client, task_queue=queue, workflows=[ShownPlan]):
            yield Shown(client, queue)
    finally:
        ShownPlan.runs.clear()

"""Which worker takes the steps of a plan: its own alone, all of them once there are several."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.tool import Tool, tool
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import WORKER, Neighbours
from plansurvive.worker import build, identity
from tests.kit.driving import Plans
from tests.kit.waiting import connected, until
from tests.runtime.test_task_queues import from_another_machine

pytestmark = pytest.mark.on_server("how it shares steps among workers")

STEPS = 40
Pair = Callable[..., AbstractAsyncContextManager[None]]


class Gate:
    """Opens when as many steps as expected run at the same time."""

    def __init__(self) -> None:
        self._running, self._open = 0, asyncio.Event()

    def tools(self, worker: str) -> dict[str, Tool]:
        """A tool whose value is the name of the worker that called it."""

        @tool(effect="pure")
        async def where() -> str:
            """Wait until all steps run, and say where this one did.

            Returns:
                The name of the worker.
            """
            self._running += 1
            if self._running == STEPS:
                self._open.set()
            await self._open.wait()
            return worker

        return {"where": where}


@pytest.fixture
def pair(server: Server, temporal_client: Client, settings: Settings) -> Pair:
    """Two workers with as many slots each; only the first one has workflows. `alone`: it believes to be alone."""

    @asynccontextmanager
    async def start(slots: int, *, alone: bool) -> AsyncIterator[None]:
        gate, neighbours = Gate(), Neighbours()
        other = await connected(server.address, data_converter=temporal_client.data_converter)
        neighbours.are_there = not alone
        of_slots = settings.with_flags(max_activities=slots)
        first = build(temporal_client, of_slots, gate.tools("first"), indexed=True, neighbours=neighbours)
        second = build(other, of_slots, gate.tools("second"), indexed=True, workflows=())
        async with first, second:
            yield

    return start


async def ran(plans: Plans) -> Counter[str]:
    """Number of steps by worker."""
    steps: list[dict[str, Any]] = [{"id": f"s{number}", "tool": "where"} for number in range(STEPS)]
    view = await plans.run(steps)
    return Counter(each["result"]["value"] for each in view["steps"])


@pytest.mark.modes("plain")
async def test_a_worker_that_is_alone_takes_all_steps_it_has_slots_for(idle: Plans, pair: Pair) -> None:
    async with pair(100, alone=True):
        assert await ran(idle) == {"first": STEPS}


@pytest.mark.modes("plain")
async def test_a_worker_with_neighbours_leaves_steps_to_them(idle: Plans, pair: Pair) -> None:
    async with pair(100, alone=False):
        assert (await ran(idle))["second"] > 0


@pytest.mark.modes("plain")
@pytest.mark.parametrize("alone", [True, False])
async def test_no_worker_is_idle_while_steps_wait_for_a_slot_of_another(idle: Plans, pair: Pair, alone: bool) -> None:
    async with pair(STEPS // 2, alone=alone):  # the steps end when all of them run at the same time
        assert await ran(idle) == {"first": STEPS // 2, "second": STEPS // 2}


@pytest.mark.modes("plain")
async def test_a_worker_notices_who_else_polls_its_queue(
    server: Server, temporal_client: Client, queue: str, pair: Pair
) -> None:
    neighbours = Neighbours()
    assert neighbours.are_there  # until it has looked it cannot know
    looking = asyncio.create_task(neighbours.keep_looking(temporal_client, queue, identity(), every=0.05))
    try:
        async with pair(5, alone=True):
            await until(lambda: not neighbours.are_there, "it knows that it is alone")
            async with from_another_machine(await connected(server.address), queue):
                await until(lambda: neighbours.are_there, f"it sees {WORKER}1@elsewhere")
    finally:
        looking.cancel()

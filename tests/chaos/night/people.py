"""Who starts the plans of a round, and decides, answers and sends events while everything around them fails.

They are at the server itself, not behind the proxy, and try again until they are heard, as `plan` does. Decisions are
sent twice, and a contrary one after them: the first counts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from tests.chaos.night.plans import Planned

PATIENT = timedelta(seconds=5)
AT_ONCE = 20
T = TypeVar("T")


@dataclass
class People:
    """They know a server by its address, and what is asked of them by the plans they started."""

    client: Client
    workspace: str
    chance: random.Random
    left: dict[str, Planned] = field(default_factory=dict)
    """Plans with decisions that are still to be made."""

    async def start(self, plan: Planned) -> None:
        """Start a plan."""
        argument = {"plan": plan.plan, "options": {"workspace": self.workspace}}

        async def begin() -> None:
            try:
                await self.client.start_workflow(
                    "PlanWorkflow", argument, id=plan.workflow, task_queue="plans", rpc_timeout=PATIENT
                )
            except WorkflowAlreadyStartedError:
                return  # the answer to an earlier try got lost

        await _heard(begin)
        if plan.asks:
            self.left[plan.workflow] = plan

    async def look(self) -> None:
        """Decide what awaits a decision now, in every plan."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(plan: Planned) -> None:
            async with slots:
                await self._look_at(plan)

        await asyncio.gather(*(one(plan) for plan in list(self.left.values())))

    async def running(self) -> list[str]:
        """Workflows that have not ended."""

        async def listed() -> list[str]:
            query = "ExecutionStatus = 'Running'"
            return [each.id async for each in self.client.list_workflows(query, rpc_timeout=PATIENT)]

        return await _heard(listed)

    async def _look_at(self, plan: Planned) -> None:
        handle = self.client.get_workflow_handle(plan.workflow)
        try:
            view = await handle.query("plan", rpc_timeout=PATIENT)
        except RPCError:
            return  # no worker at the moment, or no server
        except WorkflowQueryFailedError:
            del self.left[plan.workflow]  # it was refused
            return
        awaiting = {each["id"] for each in view["steps"] if each.get("awaiting")}
        for step in sorted(awaiting & set(plan.asks)):
            await self._say(plan, **plan.asks[step])
        done = {each["id"] for each in view["steps"] if each["status"] in ("completed", "failed", "skipped")}
        if set(plan.asks) <= done:
            del self.left[plan.workflow]

    async def _say(self, plan: Planned, signal: str, argument: dict[str, Any]) -> None:
        handle = self.client.get_workflow_handle(plan.workflow)
        messages = [(signal, argument)]
        if signal == "approve" and self.chance.random() < 0.5:
            messages += [(signal, argument), ("deny", {**argument, "by": "too late"})]
        for name, each in messages:
            await _heard(lambda: handle.signal(name, each, rpc_timeout=PATIENT))  # noqa: B023


async def _heard(say: Callable[[], Awaitable[T]]) -> T:
    """Say it until the server has taken it; it may then have taken it twice."""
    while True:
        try:
            return await say()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise
        await asyncio.sleep(0.3)

"""Scenarios of plans that want one workspace to themselves, and of the workflow that keeps the lock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from plansurvive.features.locks.rules import key_of
from tests.kit.driving import WAITS, Plans, Started, work


async def _two(plans: Plans) -> tuple[Started, Started]:
    first = await plans.start([work("first", args=WAITS)], workspaceLock=True)
    await first.until_status("first", "running")
    second = await plans.start([work("second")], {"historyLimit": 10}, workspaceLock=True)
    await second.until(lambda view: view.get("notices", {}).get("locks", {}).get("planId"), "it waits")
    plans.go()
    await first.ended()
    return first, second


async def waited(plans: Plans) -> Started:
    """A plan that waits for its workspace, gets it and releases it."""
    _, second = await _two(plans)
    await second.ended()
    return second


async def kept(plans: Plans) -> Started:
    """The keeper of a lock: two plans, one after the other, and the end of the line."""
    _, second = await _two(plans)
    await second.ended()
    keeper = Started(plans.client, key_of(str(plans.workspace.resolve())))
    await keeper.handle.result()
    return keeper


LOCKS: Mapping[str, Callable[[Plans], Awaitable[Started]]] = MappingProxyType({
    "workspace-lock": waited,
    "workspace-lock-keeper": kept,
})  # fmt: skip

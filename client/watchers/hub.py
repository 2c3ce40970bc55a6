"""Finds the watcher of a plan, and what else those who look at the page share; what nobody uses is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from temporalio.client import Client

from plansurvive.client.ids import workflow_id
from plansurvive.client.watchers.watcher import IDLE_SECONDS, Watcher

MOST = 500
"""Plans watched at the same time; beyond that, the least recently used one that nobody looks at is dropped."""


class Shared(Protocol):
    """What is followed once for all viewers."""

    @property
    def is_idle(self) -> bool:
        """Whether it may be ended: nobody has looked for a while."""

    async def stop(self) -> None:
        """End it."""


S = TypeVar("S", bound=Shared)


class Hub:
    """The watchers of one served page, by workflow id."""

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._watchers: dict[str, Watcher] = {}
        self._shared: dict[tuple[str, ...], Any] = {}
        self._idle = idle

    async def watcher(self, client: Client, plan: str) -> Watcher:
        """The watcher of a plan, shared by all; begun if there is none. Raises BadPlanId."""
        name = workflow_id(plan)
        await self._tidy()
        found = self._watchers.pop(name, None)
        if found is None or found.has_failed or found.client is not client:
            if found is not None:
                await found.stop()
            found = Watcher(client, plan, self._idle)
        self._watchers[name] = found  # the last one is the one used last
        return found

    async def shared(self, key: tuple[str, ...], begin: Callable[[], S]) -> S:
        """What all viewers of the same share, begun if there is none. `key`: a feature's name, and what is shared."""
        for idle in [each for each, found in self._shared.items() if found.is_idle]:
            await self._shared.pop(idle).stop()
        if key not in self._shared:
            self._shared[key] = begin()
        found: S = self._shared[key]
        return found

    async def close(self) -> None:
        """End all of them."""
        while self._shared:
            await self._shared.popitem()[1].stop()
        while self._watchers:
            _, watcher = self._watchers.popitem()
            await watcher.stop()

    async def _tidy(self) -> None:
        idle = [name for name, watcher in self._watchers.items() if watcher.is_idle]
        too_many = list(self._watchers)[: max(0, len(self._watchers) - MOST)]
        for name in dict.fromkeys([*idle, *(each for each in too_many if not self._watchers[each].is_viewed)]):
            await self._watchers.pop(name).stop()

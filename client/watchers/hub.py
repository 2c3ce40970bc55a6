"""Finds the watcher of a plan; those that nobody uses end by themselves."""

from __future__ import annotations

from temporalio.client import Client

from plansurvive.client.ids import workflow_id
from plansurvive.client.watchers.output import Output
from plansurvive.client.watchers.watcher import IDLE_SECONDS, Watcher
from plansurvive.runtime.value_store import ValueStore

MOST = 500
"""Plans watched at the same time; beyond that, the least recently used one that nobody looks at is dropped."""


class Hub:
    """The watchers of one served page, by workflow id."""

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._watchers: dict[str, Watcher] = {}
        self._outputs: dict[tuple[str, str], Output] = {}
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

    async def output(self, client: Client, store: ValueStore, plan: str, step: str) -> Output:
        """The output of a plan's commands, or of those of one step; followed once for all. Raises BadPlanId."""
        key = (workflow_id(plan), step)
        for idle in [key for key, output in self._outputs.items() if output.is_idle]:
            await self._outputs.pop(idle).stop()
        if key not in self._outputs:
            self._outputs[key] = Output(client, store, plan, step)
        return self._outputs[key]

    async def close(self) -> None:
        """End all of them."""
        while self._outputs:
            await self._outputs.popitem()[1].stop()
        while self._watchers:
            _, watcher = self._watchers.popitem()
            await watcher.stop()

    async def _tidy(self) -> None:
        idle = [name for name, watcher in self._watchers.items() if watcher.is_idle]
        too_many = list(self._watchers)[: max(0, len(self._watchers) - MOST)]
        for name in dict.fromkeys([*idle, *(each for each in too_many if not self._watchers[each].is_viewed)]):
            await self._watchers.pop(name).stop()

"""The results of earlier runs as one worker has them: the store, which code its tools have, the layer around attempts.

The layer is outside that of limits: a result that is taken uses up none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from plansurvive.activities.feature import Attempt, InWorker, Layer
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.features.cache.calls import CachedCall
from plansurvive.features.cache.identity import identity
from plansurvive.features.cache.model import CacheNote, CacheOrder
from plansurvive.features.cache.settings import CacheSettings
from plansurvive.features.cache.store import FOLDER, ResultStore
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Results(Layer):
    """Kept results, and the identities of tools as their code was when the worker started."""

    store: ResultStore
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, tools: Iterable[Tool]) -> Self | None:
        """Those of a worker with these settings and tools; None with PLANS_CACHE=off."""
        own = settings.of(CacheSettings)
        if own.cache == "off":
            return None
        store = ResultStore(settings.state_dir / FOLDER, sealing_of(settings), own.cache_mb * MEBIBYTE)
        return cls(store, {tool.spec.name: identity(tool) for tool in tools})

    async def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Any:
        """The value of an earlier run, if its plan asks for one that fits; else the tool's own, kept for later runs."""
        order = attempt.context.call.known_part(CacheOrder)
        if order is None or not order.asked:
            return await inner()
        cached = self.of_call(
            attempt.tool, attempt.context, attempt.args, order, attempt.values, is_filled=attempt.is_filled
        )
        if (earlier := await cached.taken()) is not None:
            attempt.taken_from, value = earlier.place, earlier.large or earlier.value
        else:
            value = await inner()
            await cached.keep(value)
        attempt.parts[CacheNote.feature] = cached.note
        return value

    def of_call(
        self, tool: Tool, context: ToolContext, args: Mapping[str, Any], order: CacheOrder, values: ValueStore,
        *, is_filled: bool = False,
    ) -> CachedCall:  # fmt: skip
        """A call that asks for the result of an earlier run."""
        version = identity(tool) if tool.spec.server else self.versions.get(tool.spec.name, ())
        return CachedCall(self.store, values, tool, version, context, args, order, is_filled)


class Worker(InWorker):
    """The kept results of a worker's state directory."""

    feature = "cache"

    def layer(self, tools: Iterable[Tool]) -> Layer | None:
        """Takes and keeps results; None with PLANS_CACHE=off."""
        return Results.of(self.settings, tools)


IN_WORKER = Worker

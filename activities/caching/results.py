"""The results of earlier runs as one worker has them: the store, and which code its tools have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from plansurvive.activities.caching.calls import CachedCall
from plansurvive.activities.caching.identity import identity
from plansurvive.activities.caching.store import FOLDER, ResultStore
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.plans.model.caching import CacheOrder
from plansurvive.runtime.keys.at_rest import AtRest
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Results:
    """Kept results, and the identities of tools as their code was when the worker started."""

    store: ResultStore
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, tools: Iterable[Tool], rest: AtRest) -> Self | None:
        """Those of a worker with these settings and tools; None with PLANS_CACHE=off."""
        if settings.cache == "off":
            return None
        store = ResultStore(settings.state_dir / FOLDER, rest, settings.cache_mb * MEBIBYTE)
        return cls(store, {tool.spec.name: identity(tool) for tool in tools})

    def of_call(
        self, tool: Tool, context: ToolContext, args: Mapping[str, Any], order: CacheOrder, values: ValueStore
    ) -> CachedCall:
        """A call that asks for the result of an earlier run."""
        version = identity(tool) if tool.spec.server else self.versions.get(tool.spec.name, ())
        return CachedCall(self.store, values, tool, version, context, args, order)

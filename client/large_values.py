"""Values too large for history, put back into a view where this machine can get at them."""

from __future__ import annotations

from typing import Any

from plans.activity_io import LargeValue
from plans.errors import ToolError
from runtime.connect import storage
from runtime.settings import Settings
from runtime.value_store import ValueStore


async def with_large_values(view: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The view with every large value that can be had in the place of its preview."""
    store = ValueStore(storage(settings))
    return view | {"steps": [await _whole(step, store) for step in view["steps"]]}


async def _whole(step: dict[str, Any], store: ValueStore) -> dict[str, Any]:
    large = (step.get("result") or {}).get("large")
    if not large:
        return step
    try:
        value = await store.get(LargeValue.model_validate(large))
    except ToolError:
        return step  # kept by a worker elsewhere: the preview has to do
    return step | {"result": {**step["result"], "value": value}}

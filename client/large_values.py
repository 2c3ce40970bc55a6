"""Loads values that were too large for history into a view, as far as this machine can access their storage."""

from __future__ import annotations

from plansurvive.plans.errors import ToolError
from plansurvive.plans.views.models import PlanView, StepView
from plansurvive.runtime.connect import storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore


async def with_large_values(view: PlanView, settings: Settings) -> PlanView:
    """The view with each large value in place of its preview. Values that cannot be loaded keep the preview."""
    store = ValueStore(storage(settings))
    return view.model_copy(update={"steps": [await _whole(step, store) for step in view.steps]})


async def _whole(step: StepView, store: ValueStore) -> StepView:
    if step.result is None or step.result.large is None:
        return step
    try:
        value = await store.get(step.result.large)
    except ToolError:
        return step  # stored on another worker's machine: keep the preview
    return step.model_copy(update={"result": step.result.model_copy(update={"value": value})})

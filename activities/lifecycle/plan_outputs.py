"""The activity `plan_outputs`: the value of a plan at its end, where values are long or stored elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.stored_arguments import whole_value
from plansurvive.activities.values.results import keep
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.execution.outputs import OutputsRequest, evaluated
from plansurvive.plans.expressions.evaluation import MAX_CHARACTERS_IN_ACTIVITY, UNITS_IN_ACTIVITY, Budget
from plansurvive.plans.large_value import LargeValue
from plansurvive.runtime.value_store import ValueStore


@dataclass(frozen=True)
class PlanOutputs:
    """The activity, with the storage of this worker."""

    values: ValueStore

    @activity.defn(name="plan_outputs")
    async def plan_outputs(self, request: OutputsRequest) -> dict[str, Any]:
        """`{value}` of a plan, or `{large}` if it is stored outside history. Raises ApplicationError BAD_OUTPUT."""
        try:
            names = list(request.large)
            stored = await asyncio.gather(*(self.values.get(request.large[name]) for name in names))
            whole = {**request.values, **dict(zip(names, stored, strict=True))}
            for name, composed in request.composed.items():
                whole[name] = await whole_value(composed, self.values)
            budget = Budget(UNITS_IN_ACTIVITY, MAX_CHARACTERS_IN_ACTIVITY)
            value = await asyncio.to_thread(evaluated, request, whole, budget)
            kept = await keep(value, self.values)
        except PlanError as error:
            retried = isinstance(error, ToolError) and error.retryable
            raise ApplicationError(error.message[:4_000], type=error.code, non_retryable=not retried) from None
        return {"large": kept.model_dump(mode="json")} if isinstance(kept, LargeValue) else {"value": kept}

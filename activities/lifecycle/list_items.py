"""The activity `list_items`: the items of a loop whose list is in values stored outside history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.stored_arguments import whole_value
from plansurvive.plans.errors import PlanError
from plansurvive.plans.expressions.evaluation import MAX_CHARACTERS_IN_ACTIVITY, UNITS_IN_ACTIVITY, Budget
from plansurvive.plans.flow.opened import ListItems, Opened
from plansurvive.plans.flow.progress import items_of
from plansurvive.runtime.value_store import ValueStore

MAX_BYTES = 1_500_000
"""Bytes of the items as JSON: they stay in history, where a result may have 2 MB (TEMPORAL.md 2)."""


@dataclass(frozen=True)
class ItemLister:
    """Reads the worker's value store."""

    values: ValueStore

    @activity.defn(name="list_items")
    async def list_items(self, request: ListItems) -> Opened:
        """The items and their keys. Raises ApplicationError with the code of what is wrong with the list."""
        try:
            known: dict[str, Any] = dict(request.values)
            for name, large in request.large.items():
                known[name] = await self.values.get(large)
            for name, composed in request.composed.items():
                known[name] = await whole_value(composed, self.values)
            budget = Budget(UNITS_IN_ACTIVITY, MAX_CHARACTERS_IN_ACTIVITY)
            found = await asyncio.to_thread(items_of, request.rule, known, budget)
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error
        size = len(found.model_dump_json(exclude_defaults=True).encode())
        if size > MAX_BYTES:
            text = f"forEach: the items have {size} bytes, {MAX_BYTES} are allowed; list less of each, such as a path"
            raise ApplicationError(text, type="LIST_TOO_LARGE", non_retryable=True)
        return found

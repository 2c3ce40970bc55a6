"""Reads the call that a decision would be about, with what the client can add: its large values.

`client.decide` adds the change that it would make to a file.
"""

from __future__ import annotations

import json
from typing import TypeVar

from temporalio.client import Client

from plansurvive.client.children.naming import located
from plansurvive.client.rpc import PATIENCE, ask_view
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.views.models import CallView
from plansurvive.plans.views.models.card import Card
from plansurvive.runtime.connect import storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore

T = TypeVar("T", bound=Card)


async def call(client: Client, plan: str, step_id: str) -> CallView | None:
    """What the step asks for, or would do if it started now; None if the plan has no such step.

    Pass its `digest` as `Choice.digest`, to decide about exactly this. Raises NoWorker.
    """
    plan, step_id = await located(client, plan, step_id)
    try:
        return await ask_view(client, plan, CallView, "call", {"stepId": step_id}, patience=PATIENCE)
    except ValueError:  # an empty answer
        return None


async def with_values(item: T, settings: Settings) -> T:
    """The pending call with its large values in full, as far as this machine can access their storage."""
    if not item.large:
        return item
    store = ValueStore(storage(settings))
    found = {name: await _whole(value, store) for name, value in item.large.items()}
    whole = item.model_copy(update={"values": {name: text for name, text in found.items() if text is not None}})
    return whole.model_copy(update={"unusual": whole.warnings})


async def _whole(value: LargeValue, store: ValueStore) -> str | None:
    try:
        found = await store.get(value)
    except ToolError:
        return None  # stored on another worker's machine: its size, hash and first part are shown
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=2)

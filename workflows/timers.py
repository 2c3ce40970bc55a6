"""Steps that are durable timers of the workflow (`sleep`); the deadline is in the step's state."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from temporalio import workflow

from plans.run import StepState


def sleep_of(state: StepState) -> asyncio.Task[dict[str, Any]]:
    """A task that sleeps until the step's deadline and returns what a tool's activity would."""
    began = state.changes[-1].time
    return asyncio.create_task(_sleep(state.deadline or began, began))


async def _sleep(until: datetime, began: datetime) -> dict[str, Any]:
    seconds = (until - workflow.now()).total_seconds()
    if seconds > 0:
        await workflow.sleep(seconds, summary="sleep")
    return {"value": {"until": until.isoformat()}, "duration": (until - began).total_seconds() * 1000}

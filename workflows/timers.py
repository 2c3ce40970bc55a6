"""Steps that are timers of the workflow: what a workflow does itself, it must check itself."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans.definition.arguments import argument_problems
    from plans.definition.references import Filled
    from plans.errors import BadReference
    from plans.model import ToolSpec
    from plans.run import StepState


def check_seconds(spec: ToolSpec, filled: Filled) -> None:
    """Raise BadReference INVALID_ARGS unless the arguments are those of a timer."""
    if filled.deferred:
        raise BadReference(f"Invalid args for {spec.name}: the value is too large; pass it in a file", "INVALID_ARGS")
    problems = argument_problems(spec, filled.args)
    if problems:
        text = "; ".join(f"{field}: {sentence}" for field, sentence in problems)
        raise BadReference(f"Invalid args for {spec.name}: {text}", "INVALID_ARGS")
    if not math.isfinite(filled.args.get("seconds", 0)):
        raise BadReference(f"Invalid args for {spec.name}: args.seconds: no finite number", "INVALID_ARGS")


def sleep_of(state: StepState) -> asyncio.Task[dict[str, Any]]:
    """Sleep until the step's deadline; the task's result is that of a tool."""
    began = state.changes[-1].time
    return asyncio.create_task(_sleep(state.deadline or began, began))


async def _sleep(until: datetime, began: datetime) -> dict[str, Any]:
    seconds = (until - workflow.now()).total_seconds()
    if seconds > 0:
        await workflow.sleep(seconds, summary="sleep")
    return {"value": {"until": until.isoformat()}, "duration": (until - began).total_seconds() * 1000}

"""Calls that must not be repeated (`repeatable: false`): claimed in the log of effects before, settled after.

A claim that is still open when the call is attempted again means that its worker died in the middle: nobody can tell
what it did, so the step fails with OUTCOME_UNKNOWN instead of doing it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from activities.attempt.errors import tool_error
from activities.tools.tool import ToolContext
from activities.workspace.effect_log import Effect
from plans.activity_io import Return
from plans.errors import ToolError


async def once(context: ToolContext, work: Callable[[], Awaitable[Return]]) -> Return:
    """Do the work, unless it was done or begun before. Raises ToolError OUTCOME_UNKNOWN."""
    log, key = context.effects.log, context.call.key
    claim = await asyncio.to_thread(log.find, key)
    if claim is not None:
        return _earlier(context, claim)
    claim = Effect(key, "call")
    await asyncio.to_thread(log.begin, claim)
    context.fault("after_intent")
    try:
        done = await work()
    except Exception as error:
        told = tool_error(error)
        await asyncio.to_thread(log.settle, claim, "failed", {"code": told.code, "message": told.message})
        raise
    context.fault("after_effect")
    await asyncio.to_thread(log.settle, claim, "done", done.model_dump(mode="json"))
    context.fault("after_done")
    return done


def _earlier(context: ToolContext, claim: Effect) -> Return:
    """What an attempt before this one came to, as far as anybody knows."""
    if claim.state == "done":
        return Return.model_validate(claim.value)
    if claim.state == "failed":
        raise ToolError(claim.value["code"], claim.value["message"])
    raise ToolError(
        "OUTCOME_UNKNOWN",
        f"the worker died while {context.tool} ran, and the call is declared not repeatable: it may have happened, in"
        " part or as a whole. Look at what it did; then run the step again, or go on without it",
    )

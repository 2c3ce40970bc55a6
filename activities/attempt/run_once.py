"""Runs calls that must not be repeated (`repeatable: false`): claims them in the effect log first, settles them after.

A claim that is still open at the next attempt means that the worker died during the call. What it did cannot be
determined, so the step fails with OUTCOME_UNKNOWN instead of possibly doing it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from plansurvive.activities.feature import Waits
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.values.errors import tool_error
from plansurvive.activities.workspace.effect_log import Effect
from plansurvive.plans.activity_io import Return
from plansurvive.plans.errors import MAY_HAVE_HAPPENED, OUTCOME_UNKNOWN, ToolError
from plansurvive.runtime.errors import KeyMissing


async def once(
    context: ToolContext, work: Callable[[], Awaitable[Return]], looked: Callable[[], Awaitable[None]]
) -> Return:
    """Do the work unless an earlier attempt began it; return its result if it finished.

    `looked` records the files that an attempt changed which did not finish. Raises ToolError: OUTCOME_UNKNOWN after one
    of these, or the error that it ended with.
    """
    log, key = context.effects.log, context.call.key
    claim = await asyncio.to_thread(log.find, key)
    if claim is not None:
        if claim.state == "open":
            await looked()
        return _earlier(context, claim)
    claim = Effect(key, "call")
    await asyncio.to_thread(log.begin, claim)
    context.fault("after_intent")
    try:
        done = await work()
    except (KeyMissing, Waits):  # of a stored argument, or a layer says that it waits: the tool was not called
        await asyncio.to_thread(log.forget, claim)
        raise
    except Exception as error:
        failure = tool_error(error)
        await asyncio.to_thread(log.settle, claim, "failed", {"code": failure.code, "message": failure.message})
        raise
    context.fault("after_effect")
    await asyncio.to_thread(log.settle, claim, "done", done.model_dump(mode="json", exclude_defaults=True))
    context.fault("after_done")
    return done


def _earlier(context: ToolContext, claim: Effect) -> Return:
    """The outcome of an earlier attempt, as far as the effect log knows it."""
    if claim.state == "done":
        return Return.model_validate(claim.value)
    if claim.state == "failed":
        raise ToolError(claim.value["code"], claim.value["message"])
    raise ToolError(
        OUTCOME_UNKNOWN,
        f"the worker died while {context.tool} was running, and the call is declared not repeatable: "
        f"{MAY_HAVE_HAPPENED}",
    )

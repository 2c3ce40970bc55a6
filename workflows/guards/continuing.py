"""Before a run continues as new: what may not be lost with it.

Handlers that still run finish first, as their answers would be lost; notices that are under way arrive. And a
cancellation is waited for: of what one workflow task brings, the SDK gives the workflow the signals first, and the
cancellation only after the workflow has run (temporalio 1.35, `activate`). A run that continues as new because of such
a signal would take no notice of the cancellation, which Temporal does not carry over to the next run. The timer gives
it one more workflow task, which sees the cancellation; if one comes after that, the server refuses to end the run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio import workflow

if TYPE_CHECKING:
    from workflows.notify.telling import Teller

_MOMENT = timedelta(milliseconds=1)


async def at_rest(teller: Teller) -> None:
    """Wait until the run may continue as new. Raises asyncio.CancelledError if it is cancelled meanwhile.

    Histories recorded before the timer was there replay without it.
    """
    await workflow.wait_condition(workflow.all_handlers_finished)
    await teller.rest()
    if workflow.patched("cancelled-before-continuing"):
        await workflow.sleep(_MOMENT, summary="continue as new")

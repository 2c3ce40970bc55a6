"""LimitsWorkflow: the one place that knows what the limits of a task queue have left.

Workers send updates (`exchange`), started with the first one; what is admitted is decided by `features.limits.limiter`
with the time of the workflow task, which no message of a worker precedes. The workflow ends when nothing was claimed
for an hour, and is started again by the next claim. No plan knows it, and no history of a plan has an event of it.

Rejected: the server's rate limits (neither exact nor by key), a lock in the state directory (one host), PostgreSQL (a
service more), a grant before the activity is scheduled (retries would not count).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.limits.limiter import Limiter
from plansurvive.features.limits.model import Exchange
from plansurvive.plans.errors import PlanError

IDLE = timedelta(hours=1)
_YEAR = 366 * 86_400_000


@workflow.defn(name="LimitsWorkflow", failure_exception_types=[PlanError, ValidationError])
class LimitsWorkflow:
    """Admits the attempts of all workers of a task queue, under its limits."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        state = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        self._limiter = Limiter.model_validate(state)
        self._asked = False

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Wait for messages until there were none for an hour, and nothing counts any more."""
        while True:
            self._asked = False
            try:
                await workflow.wait_condition(self._is_full, timeout=IDLE, timeout_summary="whether it is in use")
            except TimeoutError:
                self._limiter.tidy(_now())
                if self._limiter.is_idle and not self._asked and workflow.all_handlers_finished():
                    return
                continue
            await workflow.wait_condition(workflow.all_handlers_finished)
            self._limiter.tidy(_now())
            workflow.continue_as_new(self._limiter.model_dump(mode="json", exclude_defaults=True))

    @workflow.update(description="Sent by workers: attempts that want to begin, and those that have ended.")
    def exchange(self, *arguments: Any) -> dict[str, Any]:
        """Which attempts may begin. Fails with BAD_MESSAGE if the message cannot be read."""
        self._asked = True
        try:
            said = Exchange.model_validate(arguments[0] if len(arguments) == 1 else None)
        except ValidationError as error:
            place = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))[:200]
            text = f"send one object of claims; {place or 'this'} cannot be read"
            raise ApplicationError(text, type="BAD_MESSAGE", non_retryable=True) from None
        return self._limiter.exchange(said, _now()).model_dump(mode="json", by_alias=True, exclude_defaults=True)

    @workflow.query(description="The limits in use: what counts now, what runs, and which plans wait.")
    def limits(self, *arguments: Any) -> list[dict[str, Any]]:
        """All limits in use, at the time `{"now": milliseconds}`, else as of the last message."""
        asked = arguments[0].get("now") if arguments and isinstance(arguments[0], dict) else None
        now = asked if isinstance(asked, int) and abs(asked - _now()) < _YEAR else _now()
        seen = self._limiter.model_copy(deep=True)
        return [row.model_dump(mode="json", by_alias=True, exclude_defaults=True) for row in seen.rows(now)]

    def _is_full(self) -> bool:
        return workflow.info().is_continue_as_new_suggested()


def _now() -> int:
    return int(workflow.now().timestamp() * 1_000)


IN_RUN, WORKFLOWS = None, (LimitsWorkflow,)

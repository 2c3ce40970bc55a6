"""A plan's side of quotas: asks for its places, waits beside everything else, and releases them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.features.quotas.keeper import QuotaWorkflow
from plansurvive.features.quotas.model import QuotaGranted, QuotaPlace, QuotaPlaces, QuotaRelease, QuotaRequest
from plansurvive.features.quotas.rules import ask, granted, is_held_up_otherwise, key_of, needed, next_place, waited_for
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun, signal

AGAIN = 120.0
"""Seconds after which a plan asks again: somebody may have ended the keeper of the places."""
_TIMEOUT = timedelta(seconds=10)
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))


class QuotasOfRun(InRun):
    """The places of one run of a workflow. What it knows is in the run's part: continue-as-new keeps it."""

    feature = "quotas"
    of_one_run = True

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._run = execution.run
        self._asking: asyncio.Task[None] | None = None

    @signal("quota_place", QuotaGranted, "Sent by the keeper of the places of a label: the plan has one.")
    def quota_place(self, news: QuotaGranted) -> None:
        """Sent by the keeper of the places of one of its labels: the plan has one."""
        if granted(self._run, news, workflow.now()):
            self._rest()
            self.execution.wake()

    def turn(self) -> bool:
        """Whether steps may start. Asks for the next place that the plan needs and has not."""
        run = self._run
        if not needed(run) or (run.stopped and not run.part(QuotaPlaces).asked):
            return True
        if (wanted := next_place(run)) is not None:
            if is_held_up_otherwise(run):
                return False
            ask(run, *wanted, str(workflow.uuid4()), workflow.now())
        place = waited_for(run)
        if place is not None and self._asking is None:
            self._asking = asyncio.create_task(self._ask(place))
        return place is None

    async def ended(self) -> None:
        """Leave the lines, and give the places to the next ones, as the plan has ended."""
        self._rest()
        for place in self._run.part(QuotaPlaces).asked if needed(self._run) else ():
            message = QuotaRelease(workflow_id=workflow.info().workflow_id, token=place.token)
            with suppress(ApplicationError):  # the keeper is gone
                handle = workflow.get_external_workflow_handle(key_of(place.label))
                await handle.signal("release", message.model_dump(mode="json"))

    def _rest(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, place: QuotaPlace) -> None:
        info = workflow.info()
        request = QuotaRequest(
            key=key_of(place.label), label=place.label, most=place.most, workflow_id=info.workflow_id,
            run_id=info.first_execution_run_id, token=place.token,
        )  # fmt: skip
        with suppress(ActivityError):  # it was cancelled, as nothing else ends it: its attempts are not limited
            while True:
                await workflow.execute_activity(
                    "ask_for_place", request, start_to_close_timeout=_TIMEOUT, retry_policy=_RETRY,
                    summary=f"ask for a place of {place.label}"[:200],
                )  # fmt: skip
                await workflow.sleep(AGAIN, summary="ask for the place again")


IN_RUN, WORKFLOWS = QuotasOfRun, (QuotaWorkflow,)

"""The attempts of a plan's steps, those of its agents, child plans and earlier runs included: what is recorded of them,
and what runs at this moment.

What runs is known from the heartbeats of its activity, which the server tells without a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus

from plansurvive.client.children.naming import located, no_such_step
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import recorded_id
from plansurvive.client.rpc import ask, describe, heartbeat_of, memo_of, pending_call
from plansurvive.plans.activity_io import WORKER_LOST, logs_of, time_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.ids import covers
from plansurvive.plans.flow.progress import CANCELLED
from plansurvive.plans.run import Status
from plansurvive.plans.views.models.live import LiveView, live_of
from plansurvive.plans.views.progress.logs import LoggedAttempt, LoggedStep, LogsPage

GONE = frozenset((PlanNotFound.code, "UNKNOWN_STEP"))
_LAST = datetime.max.replace(tzinfo=UTC)


class Shown(NamedTuple):
    """An attempt and whose it is."""

    label: str
    """The step; with what leads to it: of an agent's call `research.call_2`, of a child plan's step `deploy/upload`."""
    step: LoggedStep
    attempt: LoggedAttempt
    runs: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from all others, while it runs and afterwards."""
        attempt = self.attempt
        return (self.label, attempt.began or (attempt.run, attempt.call, attempt.number))

    @property
    def is_given_up(self) -> bool:
        """Whether it failed and was not retried, though further attempts were allowed."""
        attempt = self.attempt
        failed = attempt.code not in (None, WORKER_LOST, CANCELLED) and attempt.delay is None
        return failed and not self.runs and attempt.number < self.step.of

    @property
    def of(self) -> int | None:
        """How many attempts there are at most; None: no further one, or they are not counted."""
        return None if self.is_given_up or self.attempt.number > self.step.of else self.step.of


class Known(NamedTuple):
    """What is known of a plan at one moment."""

    attempts: list[Shown]
    """In the order in which they began."""
    steps: list[LoggedStep]
    """Of the plan itself, as far as they have begun, or the one that was asked for."""
    has_ended: bool


class Attempts:
    """Reads the attempts of a plan again and again; the plan is queried only when its history has grown."""

    def __init__(self, client: Client, plan: str, step: str = "") -> None:
        """`step`: only of this one; of a child plan's, `deploy/upload`."""
        self._client, self._plan, self._step, self._prefix = client, plan, step, ""
        self._recorded: dict[str, tuple[object, list[LoggedStep]]] = {}

    async def known(self) -> Known:
        """The attempts now.

        Raises PlanNotFound, NotConnected, NoWorker, and PlanError UNKNOWN_STEP if there is no such step.
        """
        path = self._step
        self._plan, self._step = await located(self._client, self._plan, path)
        self._prefix += path.removesuffix(self._step)
        description = await describe(self._client, self._plan)
        found = await self._of(description, self._plan, self._step, self._prefix)
        steps, earlier = self._recorded[self._plan][1], description
        # Of earlier runs only what their agents and child plans did: what their own steps did is recorded in this one.
        while name := recorded_id((await memo_of(earlier)).get("resumes")):
            try:
                earlier = await describe(self._client, name)
                before = await self._steps(earlier, name, self._step)
            except PlanError as error:
                if error.code not in GONE:
                    raise
                break  # the server has forgotten it, or it had no such step
            for step in before:
                found += await self._below(step, self._prefix)
        ordered = sorted(found, key=lambda each: each.attempt.began or _LAST)
        return Known(ordered, steps, description.status is not WorkflowExecutionStatus.RUNNING)

    async def _of(self, description: WorkflowExecutionDescription, plan: str, step: str, prefix: str) -> list[Shown]:
        # The running ones were read first: one that ends in between is then found twice, not never.
        steps = await self._steps(description, plan, step)
        found = [Shown(prefix + each.step_id, each, attempt) for each in steps for attempt in each.attempts]
        for below in await asyncio.gather(*(self._below(each, prefix) for each in steps)):
            found += below
        recorded = {each.key for each in found}
        running = await _running(description, steps, step, prefix)
        return found + [each for each in running if each.key not in recorded]

    async def _below(self, step: LoggedStep, prefix: str) -> list[Shown]:
        """The attempts of the agents and child plans that a step began."""
        found = list[Shown]()
        for name, own in step.members.items():
            with suppress(PlanNotFound):  # it has not begun, or the server has forgotten it
                found += await self._of(await describe(self._client, name), name, "", prefix + own)
        return found

    async def _steps(self, description: WorkflowExecutionDescription, plan: str, step: str) -> list[LoggedStep]:
        state = (description.run_id, description.history_length)
        if plan in self._recorded and self._recorded[plan][0] == state:
            return self._recorded[plan][1]
        found, since = list[LoggedStep](), 0
        while True:
            asked = {"stepId": step, "since": since} if step else {"since": since}
            page = LogsPage.model_validate(await ask(self._client, plan, "logs", asked))
            found += page.steps
            if step and not found:
                raise await no_such_step(self._client, plan, step)
            if page.next is None:
                break
            since = page.next
        self._recorded[plan] = state, found
        return found


async def _running(
    description: WorkflowExecutionDescription, steps: list[LoggedStep], only: str, prefix: str
) -> list[Shown]:
    """The attempts of the calls in flight, those included that another one follows."""
    found, owners = list[Shown](), {each.step_id: each for each in steps}
    for pending in description.raw_description.pending_activities:
        details = await heartbeat_of(description, pending)
        step, number = pending_call(pending, details)
        if only and not covers(only, step):
            continue
        live = live_of(details)
        owner = owners.get(step) or LoggedStep(
            step_id=step, tool=pending.activity_type.name, status=Status.RUNNING, of=live.of or 1
        )
        for attempt in _attempts(details, live, number):
            found.append(Shown(prefix + step, owner, attempt, runs=attempt.code is None))
    return found


def _attempts(details: Mapping[str, Any], live: LiveView, call: int) -> Iterator[LoggedAttempt]:
    """The attempts of a call before the one that runs, and that one, as its worker reported them."""
    for attempt in live.attempts:
        yield LoggedAttempt(call=call, logs=attempt.logs, **attempt.model_dump(exclude={"logs"}))
    began = time_of(details.get("began"))
    if began is not None:
        yield LoggedAttempt(call=call, number=live.attempt, began=began, logs=logs_of(details.get("logs")))

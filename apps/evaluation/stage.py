"""Plays a recorded run: its workflow's own code, with every command answered here and none carried out.

Time is that of the record: an activity lasts as long as it did, and a timer passes when nothing else is under way. So a
run of hours is played in moments, in the order in which it happened.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, Protocol

from temporalio.api.common.v1 import ActivityType, Payload
from temporalio.api.failure.v1 import ActivityFailureInfo, ApplicationFailureInfo, Failure
from temporalio.bridge.proto.activity_result import ActivityResolution, Cancellation, Success
from temporalio.bridge.proto.activity_result import Failure as FailedActivity
from temporalio.bridge.proto.workflow_activation import (
    FireTimer,
    ResolveActivity,
    ResolveChildWorkflowExecutionStart,
    ResolveChildWorkflowExecutionStartSuccess,
    ResolveSignalExternalWorkflow,
    WorkflowActivationJob,
)
from temporalio.converter import DataConverter

from plansurvive.apps.evaluation.answers import ASK, CHECK, Answers, Key, data_of, unbound
from plansurvive.apps.evaluation.instance import Instance
from plansurvive.apps.evaluation.played import Played, asked, called
from plansurvive.apps.evaluation.record import Done, Record

NOT_RECORDED = "NOT_RECORDED"
"""Code of a call that the record has no answer to."""
MOST_COMMANDS = 200_000
"""Commands of one replay: far above any run, in case a workflow never comes to rest."""


class Stopped(Exception):
    """The replay ends here."""


class Written(Stopped):
    """The replay ends because all of the run that is replayed has been: its plan is written."""


class Reply(NamedTuple):
    """The outcome of an LLM request: a result or a failure."""

    result: list[Payload] | None
    failure: Failure | None
    seconds: float
    cancelled: bool = False


Ask = Callable[[dict[str, Any], int], Awaitable[Reply]]
"""Answers an LLM request: its input as JSON data, and its number, from 1. Raises Stopped."""


class Part(Protocol):
    """What is particular about agents, and about plans."""

    async def at_rest(self, stage: Stage) -> list[WorkflowActivationJob]:
        """What comes from outside when nothing is under way. Raises Stopped."""

    def missing(self, stage: Stage, key: Key) -> Done:
        """What becomes of a call that the record does not answer. Raises Stopped."""

    def starts(self, stage: Stage, name: str) -> None:
        """An activity or a child is to start. Raises Stopped where the replay ends before it."""

    async def closes(self, stage: Stage) -> None:
        """Note what the run has come to."""


class Stage:
    """One run, played once."""

    def __init__(self, record: Record, converter: DataConverter, answers: Answers, ask: Ask, part: Part) -> None:
        self.record, self.answers = record, answers
        self.played = Played()
        self.now = record.started
        self._ask, self._part = ask, part
        self._instance = Instance(record, converter)
        self._payloads = converter.payload_converter_class()
        self._due: list[tuple[datetime, int, bool, WorkflowActivationJob]] = []
        self._gone: set[int] = set()
        self._numbers, self._timers = count(), dict[int, int]()
        self._result: list[Payload] | None = None
        self._failure: Failure | None = None
        self._over = False

    async def play(self) -> Played:
        """Play the run to its end, or to where it has to stop. Raises PlayFailed, PlanError."""
        try:
            try:
                await self._take(await self._instance.start(self.now))
                while not self._over:
                    await self._go_on()
            except Written:
                pass
            except Stopped as stop:
                self.played.stopped = str(stop)
            await self._part.closes(self)
            return self.played
        finally:
            await self._instance.close(self.now)

    async def state(self) -> dict[str, Any]:
        """The workflow's state, as its query gives it."""
        found = data_of([await self._instance.query("state", self.now)])
        return found if isinstance(found, dict) else {}

    @property
    def summary(self) -> dict[str, Any]:
        """What the run gave as its result, or as the details of its failure; empty if it has not ended."""
        found = data_of(self._result or [])
        if self._failure is not None:
            found = data_of(self._failure.application_failure_info.details.payloads)
        return found if isinstance(found, dict) else {}

    def payloads(self, *values: Any) -> list[Payload]:
        """Values as payloads."""
        return self._payloads.to_payloads(values)

    async def _go_on(self) -> None:
        """What comes next: an activity that ends, a person, or the time."""
        while self._due and self._due[0][1] in self._gone:
            heapq.heappop(self._due)
        if not self._due or self._due[0][2]:
            if jobs := await self._part.at_rest(self):
                await self._take(await self._instance.activate(jobs, self.now))
                return
            if not self._due:
                raise Stopped("it waits for something that the record does not have")
        due, _, _, job = heapq.heappop(self._due)
        self.now = max(self.now, due)
        await self._take(await self._instance.activate([job], self.now))

    async def _take(self, commands: Sequence[Any]) -> None:
        for command in commands:
            await self._command(command, command.WhichOneof("variant"))
            if next(self._numbers) > MOST_COMMANDS:
                raise Stopped(f"it gave more than {MOST_COMMANDS:,} commands")

    async def _command(self, command: Any, kind: str) -> None:
        if kind in ("schedule_activity", "schedule_local_activity"):
            await self._activity(getattr(command, kind), is_local=kind == "schedule_local_activity")
        elif kind == "start_timer":
            timer = command.start_timer
            lasts = timer.start_to_fire_timeout.ToTimedelta()
            job = WorkflowActivationJob(fire_timer=FireTimer(seq=timer.seq))
            self._timers[timer.seq] = self._later(lasts, job, is_timer=True)
        elif kind == "cancel_timer":
            self._gone.add(self._timers.pop(command.cancel_timer.seq, -1))
        elif kind == "signal_external_workflow_execution":
            sent = ResolveSignalExternalWorkflow(seq=command.signal_external_workflow_execution.seq)
            self._later(timedelta(), WorkflowActivationJob(resolve_signal_external_workflow=sent))
        elif kind == "start_child_workflow_execution":
            self._part.starts(self, command.start_child_workflow_execution.workflow_type)
            began = ResolveChildWorkflowExecutionStart(
                seq=command.start_child_workflow_execution.seq,
                succeeded=ResolveChildWorkflowExecutionStartSuccess(run_id=self.record.run_id),
            )
            self._later(timedelta(), WorkflowActivationJob(resolve_child_workflow_execution_start=began))
        elif kind == "update_response":
            if command.update_response.HasField("rejected"):
                self.played.refused.append(command.update_response.rejected.message)
        else:
            self._ended(command, kind)

    def _ended(self, command: Any, kind: str) -> None:
        if kind == "complete_workflow_execution":
            self._result, self._over = [command.complete_workflow_execution.result], True
        elif kind == "fail_workflow_execution":
            self._failure, self._over = command.fail_workflow_execution.failure, True
        elif kind in ("cancel_workflow_execution", "continue_as_new_workflow_execution"):
            self._over = True

    async def _activity(self, command: Any, *, is_local: bool) -> None:
        name = command.activity_type
        self._part.starts(self, name)
        if name == ASK:
            reply = await self._asked(data_of(command.arguments))
            done = Done(name, [], self.now, reply.result, reply.failure, reply.cancelled, reply.seconds)
        elif self.answers.is_tool(name) and not is_local:
            done = self._called(Key.sent(name, command.arguments))
        else:
            done = self._other(name)
        result = ResolveActivity(seq=command.seq, result=_resolution(done, command), is_local=is_local)
        self._later(timedelta(seconds=done.seconds), WorkflowActivationJob(resolve_activity=result))

    async def _asked(self, request: Any) -> Reply:
        sent = request if isinstance(request, dict) else {}
        reply = await self._ask(sent, len(self.played.requests) + 1)
        self.played.requests.append(asked(sent, reply.result, reply.failure, reply.seconds))
        return reply

    def _called(self, key: Key) -> Done:
        found = self.answers.call(key)
        done = self._part.missing(self, key) if found is None else found.done
        self.played.calls.append(called(key, done, repeated=bool(found and found.repeated)))
        if done.result is None and done.failure is None and not done.cancelled:
            raise Stopped(f"the recorded call of '{key.tool}' had not ended")
        return done

    def _other(self, name: str) -> Done:
        """The recorded outcome of an activity that is not a tool's; nothing, of one that was not recorded."""
        done = self.answers.other(name)
        if done is None or done.result is None:
            return Done(name, [], self.now, result=self.payloads(None))
        if name == CHECK and isinstance(facts := data_of(done.result), dict):
            return Done(name, [], self.now, result=self.payloads(unbound(facts)))
        return done

    def _later(self, lasts: timedelta, job: WorkflowActivationJob, *, is_timer: bool = False) -> int:
        number = next(self._numbers)
        heapq.heappush(self._due, (self.now + max(lasts, timedelta()), number, is_timer, job))
        return number


def not_recorded(key: Key, now: datetime) -> Done:
    """The outcome of a call that the record has no answer to, where a replay goes on all the same."""
    text = f"this call of '{key.tool}' is not in the record of the run that is replayed, so nothing was done"
    info = ApplicationFailureInfo(type=NOT_RECORDED, non_retryable=True)
    return Done(key.tool, [], now, failure=Failure(message=text, application_failure_info=info))


def _resolution(done: Done, command: Any) -> ActivityResolution:
    if done.result is not None:
        return ActivityResolution(completed=Success(result=done.result[0] if done.result else None))
    info = ActivityFailureInfo(
        activity_type=ActivityType(name=command.activity_type), activity_id=command.activity_id, identity="replay"
    )
    failure = Failure(message="Activity task failed", activity_failure_info=info)
    if done.failure is None:
        failure.message = "Activity task cancelled"
        failure.cause.canceled_failure_info.SetInParent()
        return ActivityResolution(cancelled=Cancellation(failure=failure))
    failure.cause.CopyFrom(done.failure)
    return ActivityResolution(failed=FailedActivity(failure=failure))

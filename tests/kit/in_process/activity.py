"""An activity of a run as the server sees it, and a local activity as the SDK's core sees it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import ActivityType, Payload, Payloads, RetryPolicy
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import ActivityFailureInfo, ApplicationFailureInfo, Failure, TimeoutFailureInfo
from temporalio.bridge.proto.activity_result import (
    ActivityExecutionResult,
    ActivityResolution,
    Cancellation,
    DoBackoff,
    Success,
)
from temporalio.bridge.proto.activity_result import Failure as FailedActivity
from temporalio.bridge.proto.activity_task import (
    ActivityCancellationDetails,
    ActivityCancelReason,
    ActivityTask,
    Cancel,
    Start,
)
from temporalio.bridge.proto.workflow_activation import ResolveActivity, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import ActivityCancellationType

if TYPE_CHECKING:
    from tests.kit.in_process.clock import Timer
    from tests.kit.in_process.core import Core
    from tests.kit.in_process.execution import Execution

FIRST, FACTOR, MOST = timedelta(seconds=1), 2.0, 100
"""The server's retry policy where a command has none: first pause, factor, longest pause in first pauses."""


_PASSED_ON = (
    *("schedule_to_close_timeout", "start_to_close_timeout", "heartbeat_timeout"),
    *("retry_policy", "priority"),
)


class Attempts:
    """What a remote and a local activity have in common: attempts under a retry policy."""

    is_local = False

    def __init__(self, execution: Execution, command: Any) -> None:
        self.execution, self.command, self.attempt = execution, command, 1
        self.core: Core | None = None
        self.is_done = self.is_cancelled = False
        self.scheduled = execution.server.clock.now()
        self.last_failure: Failure | None = None
        self.beat_details: Sequence[Payload] = ()
        self._token = b""

    def is_current(self, token: bytes) -> bool:
        """Whether something may still come of the attempt with this token."""
        return not self.is_done and token == self._token

    def task(self, token: bytes) -> ActivityTask:
        """The task that starts this attempt."""
        command, execution, now = self.command, self.execution, self.execution.server.clock.now()
        start = Start(
            workflow_namespace=execution.server.namespace,
            workflow_type=execution.type,
            activity_id=command.activity_id,
            activity_type=command.activity_type,
            input=command.arguments,
            heartbeat_details=self.beat_details,
            attempt=self.attempt,
            is_local=self.is_local,
        )
        start.workflow_execution.workflow_id, start.workflow_execution.run_id = execution.id, execution.run_id
        start.scheduled_time.FromDatetime(self.scheduled)
        start.current_attempt_scheduled_time.FromDatetime(now)
        start.started_time.FromDatetime(now)
        for name, payload in command.headers.items():
            start.header_fields[name].CopyFrom(payload)
        for name in (
            "schedule_to_close_timeout",
            "start_to_close_timeout",
            "heartbeat_timeout",
            "retry_policy",
            "priority",
        ):
            if name in command.DESCRIPTOR.fields_by_name and command.HasField(name):
                getattr(start, name).CopyFrom(getattr(command, name))
        if not self.is_local and not start.HasField("retry_policy"):
            start.retry_policy.SetInParent()
        return ActivityTask(task_token=token, start=start)

    def next_pause(self, failure: Failure) -> tuple[timedelta | None, RetryState.ValueType]:
        """How long to wait for the next attempt, or that there is none, and why."""
        policy: RetryPolicy = self.command.retry_policy
        info = failure.application_failure_info
        if self.is_cancelled:
            return None, RetryState.RETRY_STATE_CANCEL_REQUESTED
        if failure.HasField("application_failure_info") and (
            info.non_retryable or info.type in policy.non_retryable_error_types
        ):
            return None, RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
        if 0 < policy.maximum_attempts <= self.attempt:
            return None, RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
        first = policy.initial_interval.ToTimedelta() or FIRST
        longest = policy.maximum_interval.ToTimedelta() or first * MOST
        pause = min(first * (policy.backoff_coefficient or FACTOR) ** (self.attempt - 1), longest)
        if info.HasField("next_retry_delay"):
            pause = info.next_retry_delay.ToTimedelta()
        limit = self.command.schedule_to_close_timeout.ToTimedelta()
        if limit and self.execution.server.clock.peek() + pause >= self.scheduled + limit:
            return None, RetryState.RETRY_STATE_TIMEOUT
        return pause, RetryState.RETRY_STATE_IN_PROGRESS

    def resolve(self, resolution: ActivityResolution) -> None:
        """Tell the run how it ended."""
        self.is_done = True
        job = ResolveActivity(seq=self.command.seq, result=resolution, is_local=self.is_local)
        self.execution.activities.pop((self.command.seq, self.is_local), None)
        self.execution.tell(WorkflowActivationJob(resolve_activity=job))

    def failed(
        self, failure: Failure, retry_state: RetryState.ValueType, message: str = "Activity task failed"
    ) -> ActivityResolution:
        """A failure as workflows get it."""
        whole = Failure(message=message, cause=failure, activity_failure_info=self._info(retry_state))
        return ActivityResolution(failed=FailedActivity(failure=whole))

    def cancelled(self, details: Failure | None = None) -> ActivityResolution:
        """A cancellation as workflows get it."""
        whole = Failure(message="Activity cancelled", activity_failure_info=self._info())
        whole.cause.message = "Activity cancelled"
        whole.cause.canceled_failure_info.SetInParent()
        if details is not None:
            whole.cause.canceled_failure_info.CopyFrom(details.canceled_failure_info)
        return ActivityResolution(cancelled=Cancellation(failure=whole))

    def _info(self, retry_state: RetryState.ValueType = RetryState.RETRY_STATE_UNSPECIFIED) -> ActivityFailureInfo:
        return ActivityFailureInfo(
            activity_type=ActivityType(name=self.command.activity_type),
            activity_id=self.command.activity_id,
            retry_state=retry_state,
        )


class Activity(Attempts):
    """An activity on a task queue."""

    def __init__(self, execution: Execution, command: Any, event_id: int) -> None:
        super().__init__(execution, command)
        self._event_id = event_id
        self._timers: dict[str, Timer] = {}
        self.queue = command.task_queue or execution.queue
        self._limit("schedule_to_close_timeout", TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE)
        self._limit("schedule_to_start_timeout", TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START)
        self._offer()

    @property
    def is_started(self) -> bool:
        """Whether a worker has it."""
        return self.core is not None

    def start(self, core: Core, token: bytes) -> ActivityTask:
        """A worker has taken it."""
        self.core, self._token = core, token
        self._stop("schedule_to_start_timeout")
        self._limit("start_to_close_timeout", TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
        self._limit("heartbeat_timeout", TimeoutType.TIMEOUT_TYPE_HEARTBEAT)
        return self.task(token)

    def beat(self, token: bytes, details: Sequence[Payload]) -> Cancel | None:
        """A heartbeat of an attempt; returns what the worker is told by the answer to it."""
        if not self.is_current(token):
            return cancel_of(ActivityCancelReason.NOT_FOUND)
        self.beat_details = list(details)
        self._stop("heartbeat_timeout")
        self._limit("heartbeat_timeout", TimeoutType.TIMEOUT_TYPE_HEARTBEAT)
        return cancel_of(ActivityCancelReason.CANCELLED) if self.is_cancelled else None

    def complete(self, token: bytes, result: ActivityExecutionResult) -> None:
        """An attempt has ended; of one that is over already nothing is taken."""
        if not self.is_current(token):
            return
        if result.HasField("completed"):
            self._end()
            self._record("COMPLETED", result=Payloads(payloads=[result.completed.result]))
            self.resolve(ActivityResolution(completed=Success(result=result.completed.result)))
        elif result.HasField("cancelled") and self.is_cancelled:
            self._canceled(result.cancelled.failure)
        elif result.HasField("cancelled"):  # the worker shuts down
            self._failed(Failure(message="Worker is shutting down", application_failure_info=ApplicationFailureInfo()))
        else:
            self._failed(result.failed.failure)

    def cancel(self, kind: ActivityCancellationType.ValueType) -> None:
        """The workflow cancels it."""
        if self.is_done or self.is_cancelled:
            return
        if kind == ActivityCancellationType.ABANDON:
            self.resolve(self.cancelled())
            self.is_done = False
            return
        self.is_cancelled = True
        self.execution.record("ACTIVITY_TASK_CANCEL_REQUESTED", scheduled_event_id=self._event_id)
        if not self.is_started:
            self._canceled(None)
        elif kind == ActivityCancellationType.TRY_CANCEL:
            self.resolve(self.cancelled())

    def forget(self) -> None:
        """The run is over: nothing comes of it any more."""
        self.is_done = True
        self._end()

    def _offer(self) -> None:
        self.core, self._token = None, b""
        self.execution.server.offer(self)

    def _canceled(self, failure: Failure | None) -> None:
        self._end()
        self.execution.record("ACTIVITY_TASK_CANCELED", scheduled_event_id=self._event_id)
        self.resolve(self.cancelled(failure))

    def _failed(self, failure: Failure) -> None:
        if self._goes_on(failure) is None:
            return
        state = self.next_pause(failure)[1]
        self._end()
        self._record("FAILED", failure=failure, retry_state=state)
        self.resolve(self.failed(failure, state))

    def _timed_out(self, name: str, kind: TimeoutType.ValueType) -> None:
        words = {
            TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "ScheduleToClose",
            TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START: "ScheduleToStart",
            TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "StartToClose",
            TimeoutType.TIMEOUT_TYPE_HEARTBEAT: "Heartbeat",
        }
        failure = Failure(
            message=f"activity {words[kind]} timeout", timeout_failure_info=TimeoutFailureInfo(timeout_type=kind)
        )
        failure.timeout_failure_info.last_heartbeat_details.payloads.extend(self.beat_details)
        is_of_attempt = name in ("start_to_close_timeout", "heartbeat_timeout")
        if is_of_attempt and self._goes_on(failure) is None:
            return
        self._end()
        state = RetryState.RETRY_STATE_TIMEOUT
        if is_of_attempt:
            state = self.next_pause(failure)[1]
        self._record("TIMED_OUT", failure=failure, retry_state=state)
        self.resolve(self.failed(failure, state, "Activity task timed out"))

    def _goes_on(self, failure: Failure) -> RetryState.ValueType | None:
        """Wait for the next attempt, if there is one: None; else why not."""
        pause, state = self.next_pause(failure)
        if pause is None:
            return state
        self.last_failure, self.attempt = failure, self.attempt + 1
        self._stop("start_to_close_timeout", "heartbeat_timeout")
        self.core, self._token = None, b""
        self._timers["retry"] = self.execution.server.clock.after(pause, self._offer)
        self.execution.server.dispatch()  # this pause may be skipped
        return None

    def _record(self, kind: str, **fields: Any) -> None:
        started: dict[str, Any] = {"scheduled_event_id": self._event_id, "attempt": self.attempt}
        if self.last_failure is not None:
            started["last_failure"] = self.last_failure
        if self.core is not None:
            started["identity"] = self.core.identity
        event = self.execution.record("ACTIVITY_TASK_STARTED", **started)
        self.execution.record(
            f"ACTIVITY_TASK_{kind}", scheduled_event_id=self._event_id, started_event_id=event.event_id, **fields
        )

    def _limit(self, name: str, kind: TimeoutType.ValueType) -> None:
        limit: Duration = getattr(self.command, name)
        if limit.ToTimedelta():
            self._timers[name] = self.execution.server.clock.after(
                limit.ToTimedelta(),
                lambda: self._timed_out(name, kind),
                is_skipped_to=name == "schedule_to_start_timeout",
            )

    def _stop(self, *names: str) -> None:
        for name in names:
            if timer := self._timers.pop(name, None):
                timer.cancel()

    def _end(self) -> None:
        self._stop(*self._timers)
        self.execution.server.withdraw(self)


class LocalActivity(Attempts):
    """An activity that the worker of the run carries out within the workflow task, without the server."""

    is_local = True

    def __init__(self, execution: Execution, command: Any) -> None:
        super().__init__(execution, command)
        self.attempt = max(command.attempt, 1)
        self._timer: Timer | None = None

    def start(self, core: Core) -> None:
        """Carry it out, on this worker."""
        self.core = core
        self._token = core.start_local(self)

    def complete(self, token: bytes, result: ActivityExecutionResult) -> None:
        """An attempt has ended."""
        if not self.is_current(token):
            return
        if result.HasField("completed"):
            self.execution.record_marker("core_local_activity", self.command.activity_type)
            self.resolve(ActivityResolution(completed=Success(result=result.completed.result)))
        elif result.HasField("cancelled") and self.is_cancelled:
            self.resolve(self.cancelled(result.cancelled.failure))
        elif result.HasField("cancelled"):
            self.core = None  # the worker shuts down; another one does it
        else:
            self._failed(result.failed.failure)

    def cancel(self, kind: ActivityCancellationType.ValueType) -> None:
        """The workflow cancels it."""
        if self.is_done or self.is_cancelled:
            return
        self.is_cancelled = True
        if self.core is not None and self._timer is None:
            self.core.cancel(self._token, ActivityCancelReason.CANCELLED)
        if kind != ActivityCancellationType.WAIT_CANCELLATION_COMPLETED or self._timer is not None:
            self.forget()
            self.resolve(self.cancelled())

    def forget(self) -> None:
        """Nothing comes of it any more."""
        self.is_done = True
        if self._timer is not None:
            self._timer.cancel()

    def _failed(self, failure: Failure) -> None:
        pause, state = self.next_pause(failure)
        if pause is None:
            self.execution.record_marker("core_local_activity", self.command.activity_type)
            self.resolve(self.failed(failure, state))
            return
        self.attempt += 1
        threshold = self.command.local_retry_threshold.ToTimedelta()
        if threshold and pause > threshold:
            back = DoBackoff(attempt=self.attempt)
            back.backoff_duration.FromTimedelta(pause)
            back.original_schedule_time.FromDatetime(self.scheduled)
            self.resolve(ActivityResolution(backoff=back))
            return
        core = self.core
        self._timer = self.execution.server.clock.after(pause, lambda: self._again(core))

    def _again(self, core: Core | None) -> None:
        self._timer = None
        if core is not None and core.is_up:
            self.start(core)
        else:
            self.core = None


def cancel_of(reason: ActivityCancelReason.ValueType) -> Cancel:
    """What a worker is told so that it cancels an attempt."""
    details = ActivityCancellationDetails(
        is_not_found=reason == ActivityCancelReason.NOT_FOUND,
        is_cancelled=reason == ActivityCancelReason.CANCELLED,
        is_worker_shutdown=reason == ActivityCancelReason.WORKER_SHUTDOWN,
    )
    return Cancel(reason=reason, details=details)

"""One run of a workflow in an in-process server: its history, and what its commands set off.

What comes from outside becomes a job (`tell`), which the next workflow task brings. A task is not interrupted: what
arrives while it is carried out is part of the next one, or of the next run if it continues as new.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from temporalio.api.common.v1 import (
    Memo,
    Payload,
    Payloads,
    Priority,
    SearchAttributes,
    WorkflowExecution,
)
from temporalio.api.enums.v1 import EventType, RetryState, WorkflowExecutionStatus
from temporalio.api.failure.v1 import (
    ApplicationFailureInfo,
    ChildWorkflowExecutionFailureInfo,
    Failure,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Outcome, Request
from temporalio.bridge.proto.child_workflow import (
    Cancellation,
    ChildWorkflowCancellationType,
    ChildWorkflowResult,
    ParentClosePolicy,
    StartChildWorkflowExecutionFailedCause,
    Success,
)
from temporalio.bridge.proto.child_workflow import Failure as FailedChild
from temporalio.bridge.proto.workflow_activation import (
    CancelWorkflow,
    DoUpdate,
    FireTimer,
    InitializeWorkflow,
    ResolveChildWorkflowExecution,
    ResolveChildWorkflowExecutionStart,
    ResolveRequestCancelExternalWorkflow,
    ResolveSignalExternalWorkflow,
    SignalWorkflow,
    WorkflowActivation,
    WorkflowActivationJob,
)

from tests.kit.in_process.activity import Activity, LocalActivity

if TYPE_CHECKING:
    from tests.kit.in_process.clock import Timer
    from tests.kit.in_process.core import Core
    from tests.kit.in_process.server import Server

SUGGESTED_EVENTS, SUGGESTED_BYTES = 4 * 1024, 4 * 1024 * 1024
"""History from which on a server suggests to continue as new."""
_ORDER = {
    "initialize_workflow": 0,
    "notify_has_patch": 1,
    "update_random_seed": 2,
    "signal_workflow": 3,
    "do_update": 4,
}
"""In which order the SDK's core brings what comes with one task; everything else stays as it came."""
_CLOSING = (
    *("complete_workflow_execution", "fail_workflow_execution", "cancel_workflow_execution"),
    "continue_as_new_workflow_execution",
)
STATUS = WorkflowExecutionStatus


@dataclass(kw_only=True)
class Beginning:
    """What a run begins with."""

    id: str
    type: str
    queue: str
    arguments: Sequence[Payload] = ()
    memo: Mapping[str, Payload] = field(default_factory=dict)
    search_attributes: Mapping[str, Payload] = field(default_factory=dict)
    headers: Mapping[str, Payload] = field(default_factory=dict)
    identity: str = ""
    execution_timeout: timedelta = timedelta()
    run_timeout: timedelta = timedelta()
    task_timeout: timedelta = timedelta()
    priority: Priority = field(default_factory=Priority)
    parent: tuple[Execution, int, int] | None = None
    """The run above, the number of the command that started this one, and how it closes with that run."""
    before: Execution | None = None
    """The run that continued as this one."""
    delay: timedelta = timedelta()


@dataclass
class Update:
    """An update, from its request to its outcome."""

    request: Request
    accepted: asyncio.Future[None]
    outcome: asyncio.Future[Outcome]
    is_delivered: bool = False

    @property
    def id(self) -> str:
        """Its id."""
        return self.request.meta.update_id


@dataclass
class Query:
    """A query that waits for its answer."""

    job: WorkflowActivationJob
    answer: asyncio.Future[Any]


@dataclass
class Task:
    """A workflow task that is in the history: what it brought, and what came of it."""

    activation: WorkflowActivation
    commands: list[str]
    flags: list[int]
    patches: list[str]


class Execution:
    """A run."""

    def __init__(self, server: Server, begun: Beginning) -> None:
        self.server, self.begun = server, begun
        self.id, self.type, self.queue, self.run_id = begun.id, begun.type, begun.queue, str(uuid.uuid4())
        before = begun.before
        self.first_run_id: str = before.first_run_id if before else self.run_id
        self.memo, self.search_attributes = dict(begun.memo), dict(begun.search_attributes)
        self.events: list[HistoryEvent] = []
        self.size = 0
        self.tasks: list[Task] = []
        self.jobs: list[WorkflowActivationJob] = []
        self.queries: list[Query] = []
        self.activities: dict[tuple[int, bool], Activity | LocalActivity] = {}
        self.children: dict[int, Execution] = {}
        self.timers: dict[int, Timer] = {}
        self.updates: dict[str, Update] = before.updates if before else {}
        self.status: STATUS.ValueType = STATUS.WORKFLOW_EXECUTION_STATUS_RUNNING
        self.closed = asyncio.Event()
        self.close_time: datetime | None = None
        self.core: Core | None = None
        self.is_at_work = self.is_cancelled = self.is_resting = self.is_suspected = False
        self.failed_tasks = 0
        self.started = server.clock.now()
        self.began: datetime = before.began if before else self.started
        self._ends: list[Timer] = []
        self._begin()

    @property
    def is_open(self) -> bool:
        """Whether it has not closed."""
        return self.status == STATUS.WORKFLOW_EXECUTION_STATUS_RUNNING

    @property
    def root(self) -> Execution:
        """The run above all."""
        return self.begun.parent[0].root if self.begun.parent else self

    # What comes from outside

    def tell(self, job: WorkflowActivationJob) -> None:
        """Bring this with the next workflow task."""
        if self.is_open:
            self.jobs.append(job)
            self.server.wake(self)

    def signal(self, name: str, arguments: Iterable[Payload], identity: str, headers: Mapping[str, Payload]) -> None:
        """Send a signal."""
        values = list(arguments)
        given = Payloads(payloads=values)
        event = self.record("WORKFLOW_EXECUTION_SIGNALED", signal_name=name, input=given, identity=identity)
        signal = SignalWorkflow(signal_name=name, input=values, identity=identity, originating_event_id=event.event_id)
        for key, payload in headers.items():
            signal.headers[key].CopyFrom(payload)
        self.tell(WorkflowActivationJob(signal_workflow=signal))

    def cancel(self, reason: str = "") -> None:
        """Request its cancellation."""
        if self.is_open and not self.is_cancelled:
            self.is_cancelled = True
            self.record("WORKFLOW_EXECUTION_CANCEL_REQUESTED", cause=reason)
            self.tell(WorkflowActivationJob(cancel_workflow=CancelWorkflow(reason=reason)))

    def terminate(self, reason: str, identity: str = "") -> None:
        """End it at once."""
        if self.is_open:
            self.record("WORKFLOW_EXECUTION_TERMINATED", reason=reason, identity=identity)
            failure = Failure(message="terminated", terminated_failure_info=TerminatedFailureInfo())
            self._close(STATUS.WORKFLOW_EXECUTION_STATUS_TERMINATED, failure=failure)

    def update(self, request: Request) -> Update:
        """Send an update, unless one of its id was sent before."""
        known = self.updates.get(request.meta.update_id)
        if known is None:
            loop = asyncio.get_running_loop()
            known = self.updates[request.meta.update_id] = Update(request, loop.create_future(), loop.create_future())
            self._bring(known)
        return known

    def _bring(self, update: Update) -> None:
        request = update.request
        do = DoUpdate(
            id=update.id,
            protocol_instance_id=update.id,
            name=request.input.name,
            input=request.input.args.payloads,
            meta=request.meta,
            run_validator=True,
        )
        for key, payload in request.input.header.fields.items():
            do.headers[key].CopyFrom(payload)
        self.tell(WorkflowActivationJob(do_update=do))

    # History

    def record(self, kind: str, **fields: Any) -> HistoryEvent:
        """Write an event into the history; returns it."""
        number = EventType.Value(f"EVENT_TYPE_{kind}")
        event = HistoryEvent(event_id=len(self.events) + 1, event_type=number)
        event.event_time.FromDatetime(self.server.clock.now())
        name = f"{kind.lower()}_event_attributes"
        attributes = getattr(event, name)
        attributes.SetInParent()
        attributes.MergeFrom(type(attributes)(**fields))
        self.events.append(event)
        self.size += event.ByteSize()
        return event

    def record_marker(self, name: str, about: str) -> None:
        """Write a marker."""
        details = {"about": Payloads(payloads=[Payload(data=about.encode())])}
        self.record("MARKER_RECORDED", marker_name=name, details=details)

    # Workflow tasks

    def activation(self, jobs: Sequence[WorkflowActivationJob]) -> WorkflowActivation:
        """What a worker gets: these jobs in the order of the SDK's core."""
        act = WorkflowActivation(
            run_id=self.run_id,
            history_length=len(self.events),
            history_size_bytes=self.size,
            continue_as_new_suggested=len(self.events) >= SUGGESTED_EVENTS or self.size >= SUGGESTED_BYTES,
            jobs=sorted(jobs, key=lambda job: _ORDER.get(str(job.WhichOneof("variant")), 5)),
        )
        act.timestamp.FromDatetime(self.server.clock.now())
        return act

    def carry_out(self, commands: Iterable[Any]) -> None:
        """Do what a workflow task has decided."""
        closing = [each for each in commands if self._carried_out(each)]
        if closing and self.is_open:
            self._end(closing[0])

    def _carried_out(self, command: Any) -> bool:
        """Carry out a command; true: it closes the run, and is left for last."""
        kind = str(command.WhichOneof("variant"))
        value = getattr(command, kind)
        if kind in _CLOSING:
            return True
        number = len(self.events)
        getattr(self, f"_{kind}")(value)
        if command.HasField("user_metadata") and len(self.events) > number:
            self.events[number].user_metadata.CopyFrom(command.user_metadata)
        return False

    def _schedule_activity(self, command: Any) -> None:
        event = self.record(
            "ACTIVITY_TASK_SCHEDULED",
            activity_id=command.activity_id,
            activity_type={"name": command.activity_type},
            task_queue={"name": command.task_queue or self.queue},
            input=Payloads(payloads=command.arguments),
            schedule_to_close_timeout=command.schedule_to_close_timeout,
            schedule_to_start_timeout=command.schedule_to_start_timeout,
            start_to_close_timeout=command.start_to_close_timeout,
            heartbeat_timeout=command.heartbeat_timeout,
            retry_policy=command.retry_policy,
            priority=command.priority,
        )
        self.activities[command.seq, False] = Activity(self, command, event.event_id)

    def _schedule_local_activity(self, command: Any) -> None:
        activity = self.activities[command.seq, True] = LocalActivity(self, command)
        if self.core is not None:
            activity.start(self.core)

    def _request_cancel_activity(self, command: Any) -> None:
        if activity := self.activities.get((command.seq, False)):
            activity.cancel(activity.command.cancellation_type)

    def _request_cancel_local_activity(self, command: Any) -> None:
        if activity := self.activities.get((command.seq, True)):
            activity.cancel(activity.command.cancellation_type)

    def _start_timer(self, command: Any) -> None:
        event = self.record(
            "TIMER_STARTED", timer_id=str(command.seq), start_to_fire_timeout=command.start_to_fire_timeout
        )

        def fire() -> None:
            self.timers.pop(command.seq, None)
            self.record("TIMER_FIRED", timer_id=str(command.seq), started_event_id=event.event_id)
            self.tell(WorkflowActivationJob(fire_timer=FireTimer(seq=command.seq)))

        self.timers[command.seq] = self.server.clock.after(command.start_to_fire_timeout.ToTimedelta(), fire)

    def _cancel_timer(self, command: Any) -> None:
        if timer := self.timers.pop(command.seq, None):
            timer.cancel()
            self.record("TIMER_CANCELED", timer_id=str(command.seq))

    def _set_patch_marker(self, command: Any) -> None:
        self.record_marker("core_patch", command.patch_id)

    def _upsert_workflow_search_attributes(self, command: Any) -> None:
        changed = command.search_attributes
        self.record("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", search_attributes=changed)
        self.search_attributes.update(changed.indexed_fields)

    def _modify_workflow_properties(self, command: Any) -> None:
        self.record("WORKFLOW_PROPERTIES_MODIFIED", upserted_memo=command.upserted_memo)
        for name, payload in command.upserted_memo.fields.items():
            if payload.data == b"" and payload.metadata.get("encoding") == b"binary/null":
                self.memo.pop(name, None)
            else:
                self.memo[name] = payload

    def _update_response(self, command: Any) -> None:
        update = self.updates[command.protocol_instance_id]
        if command.HasField("accepted"):
            self.record(
                "WORKFLOW_EXECUTION_UPDATE_ACCEPTED", protocol_instance_id=update.id, accepted_request=update.request
            )
            _settle(update.accepted, None)
            return
        if command.HasField("rejected"):
            self._drop(update)
            outcome = Outcome(failure=command.rejected)
        else:
            outcome = Outcome(success=Payloads(payloads=[command.completed]))
            if not update.accepted.done():
                self.record("WORKFLOW_EXECUTION_UPDATE_ACCEPTED", protocol_instance_id=update.id)
            self.record("WORKFLOW_EXECUTION_UPDATE_COMPLETED", meta=update.request.meta, outcome=outcome)
        if command.HasField("rejected") and update.accepted.done():
            self.record("WORKFLOW_EXECUTION_UPDATE_COMPLETED", meta=update.request.meta, outcome=outcome)
        _settle(update.outcome, outcome)
        _settle(update.accepted, None)

    def _drop(self, update: Update) -> None:
        """A rejected update leaves nothing: it is not replayed, and may be sent again."""
        if update.accepted.done():
            return
        self.updates.pop(update.id, None)
        for task in self.tasks[-1:]:
            jobs = [
                job for job in task.activation.jobs if job.do_update.id != update.id or not job.HasField("do_update")
            ]
            del task.activation.jobs[:]
            task.activation.jobs.extend(jobs)

    def _start_child_workflow_execution(self, command: Any) -> None:
        event = self.record(
            "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
            workflow_id=command.workflow_id,
            workflow_type={"name": command.workflow_type},
            task_queue={"name": command.task_queue or self.queue},
            input=Payloads(payloads=command.input),
            parent_close_policy=command.parent_close_policy,
            memo=Memo(fields=dict(command.memo)),
            search_attributes=command.search_attributes,
            priority=command.priority,
        )
        begun = Beginning(
            id=command.workflow_id,
            type=command.workflow_type,
            queue=command.task_queue or self.queue,
            arguments=command.input,
            memo=command.memo,
            search_attributes=command.search_attributes.indexed_fields,
            headers=command.headers,
            execution_timeout=command.workflow_execution_timeout.ToTimedelta(),
            run_timeout=command.workflow_run_timeout.ToTimedelta(),
            task_timeout=command.workflow_task_timeout.ToTimedelta(),
            priority=command.priority if command.priority.ByteSize() else self.begun.priority,
            parent=(self, command.seq, command.parent_close_policy),
        )
        started = ResolveChildWorkflowExecutionStart(seq=command.seq)
        if self.server.may_start(command.workflow_id, command.workflow_id_reuse_policy):
            child = self.children[command.seq] = self.server.begin(begun)
            child.cancellation = command.cancellation_type
            started.succeeded.run_id = child.run_id
            self.record(
                "CHILD_WORKFLOW_EXECUTION_STARTED",
                initiated_event_id=event.event_id,
                workflow_execution=WorkflowExecution(workflow_id=child.id, run_id=child.run_id),
                workflow_type={"name": child.type},
            )
        else:
            started.failed.workflow_id, started.failed.workflow_type = command.workflow_id, command.workflow_type
            causes = StartChildWorkflowExecutionFailedCause
            started.failed.cause = causes.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
            self.record(
                "START_CHILD_WORKFLOW_EXECUTION_FAILED",
                workflow_id=command.workflow_id,
                initiated_event_id=event.event_id,
            )
        self.tell(WorkflowActivationJob(resolve_child_workflow_execution_start=started))

    cancellation: ChildWorkflowCancellationType.ValueType = ChildWorkflowCancellationType.ABANDON

    def _cancel_child_workflow_execution(self, command: Any) -> None:
        child = self.children.get(command.child_workflow_seq)
        if child is None:
            return
        if child.cancellation != ChildWorkflowCancellationType.ABANDON:
            self.server.newest(child.id).cancel(command.reason)
        if child.cancellation in (ChildWorkflowCancellationType.ABANDON, ChildWorkflowCancellationType.TRY_CANCEL):
            self.resolve_child(child, command.child_workflow_seq, STATUS.WORKFLOW_EXECUTION_STATUS_CANCELED, None, None)

    def resolve_child(
        self,
        child: Execution,
        seq: int,
        status: STATUS.ValueType,
        result: Payload | None,
        failure: Failure | None,
    ) -> None:
        """A child has closed."""
        if not self.is_open or self.children.pop(seq, None) is None:
            return
        execution = WorkflowExecution(workflow_id=child.id, run_id=child.run_id)
        about: dict[str, Any] = {
            "namespace": self.server.namespace,
            "workflow_execution": execution,
            "workflow_type": {"name": child.type},
        }
        found = ChildWorkflowResult()
        if status == STATUS.WORKFLOW_EXECUTION_STATUS_COMPLETED:
            self.record(
                "CHILD_WORKFLOW_EXECUTION_COMPLETED", result=Payloads(payloads=[result] if result else []), **about
            )
            found.completed.CopyFrom(Success(result=result))
        else:
            info = ChildWorkflowExecutionFailureInfo(**about)
            whole = Failure(message="Child Workflow execution failed", child_workflow_execution_failure_info=info)
            state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
            whole.child_workflow_execution_failure_info.retry_state = state
            if status == STATUS.WORKFLOW_EXECUTION_STATUS_CANCELED:
                whole.message = "Child Workflow execution cancelled"
                whole.cause.message = "Child Workflow execution cancelled"
                whole.cause.canceled_failure_info.SetInParent()
                self.record("CHILD_WORKFLOW_EXECUTION_CANCELED", **about)
                found.cancelled.CopyFrom(Cancellation(failure=whole))
            else:
                if failure is not None:
                    whole.cause.CopyFrom(failure)
                kinds = {
                    STATUS.WORKFLOW_EXECUTION_STATUS_TERMINATED: "TERMINATED",
                    STATUS.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "TIMED_OUT",
                }
                self.record(f"CHILD_WORKFLOW_EXECUTION_{kinds.get(status, 'FAILED')}", **about)
                found.failed.CopyFrom(FailedChild(failure=whole))
        resolved = ResolveChildWorkflowExecution(seq=seq, result=found)
        self.tell(WorkflowActivationJob(resolve_child_workflow_execution=resolved))

    def _signal_external_workflow_execution(self, command: Any) -> None:
        name = command.child_workflow_id or command.workflow_execution.workflow_id
        about = WorkflowExecution(workflow_id=name, run_id=command.workflow_execution.run_id)
        event = self.record(
            "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
            namespace=self.server.namespace,
            workflow_execution=about,
            signal_name=command.signal_name,
            input=Payloads(payloads=command.args),
        )
        target = self.server.find(about)
        sent = ResolveSignalExternalWorkflow(seq=command.seq)
        if target is None or not target.is_open:
            self.record(
                "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", workflow_execution=about, initiated_event_id=event.event_id
            )
            sent.failure.message = "Unable to signal external workflow because it was not found"
            sent.failure.application_failure_info.SetInParent()
        else:
            target.signal(command.signal_name, command.args, "history-service", command.headers)
            self.record(
                "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED", workflow_execution=about, initiated_event_id=event.event_id
            )
        self.tell(WorkflowActivationJob(resolve_signal_external_workflow=sent))

    def _cancel_signal_workflow(self, _: Any) -> None:
        """A signal is sent at once: there is nothing to cancel."""

    def _request_cancel_external_workflow_execution(self, command: Any) -> None:
        about = WorkflowExecution(
            workflow_id=command.workflow_execution.workflow_id, run_id=command.workflow_execution.run_id
        )
        event = self.record(
            "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED", workflow_execution=about, reason=command.reason
        )
        target = self.server.find(about)
        sent = ResolveRequestCancelExternalWorkflow(seq=command.seq)
        if target is None or not target.is_open:
            self.record(
                "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED",
                workflow_execution=about,
                initiated_event_id=event.event_id,
            )
            sent.failure.message = "Unable to cancel external workflow because it was not found"
            sent.failure.application_failure_info.SetInParent()
        else:
            target.cancel(command.reason)
            self.record(
                "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED",
                workflow_execution=about,
                initiated_event_id=event.event_id,
            )
        self.tell(WorkflowActivationJob(resolve_request_cancel_external_workflow=sent))

    # Beginning and end

    def _begin(self) -> None:
        begun = self.begun
        before = begun.before
        self.record(
            "WORKFLOW_EXECUTION_STARTED",
            workflow_type={"name": self.type},
            workflow_id=self.id,
            task_queue={"name": self.queue},
            input=Payloads(payloads=begun.arguments),
            original_execution_run_id=self.run_id,
            first_execution_run_id=self.first_run_id,
            continued_execution_run_id=before.run_id if before else "",
            identity=begun.identity,
            memo=Memo(fields=self.memo),
            search_attributes=SearchAttributes(indexed_fields=self.search_attributes),
            attempt=1,
            priority=begun.priority,
        )
        initialize = InitializeWorkflow(
            workflow_type=self.type,
            workflow_id=self.id,
            arguments=begun.arguments,
            randomness_seed=uuid.UUID(self.run_id).int % 2**64,
            identity=begun.identity,
            first_execution_run_id=self.first_run_id,
            original_execution_run_id=self.run_id,
            continued_from_execution_run_id=before.run_id if before else "",
            attempt=1,
            priority=begun.priority,
        )
        for name, payload in begun.headers.items():
            initialize.headers[name].CopyFrom(payload)
        for name, payload in self.memo.items():
            initialize.memo.fields[name].CopyFrom(payload)
        for name, payload in self.search_attributes.items():
            initialize.search_attributes.indexed_fields[name].CopyFrom(payload)
        initialize.start_time.FromDatetime(self.began)
        initialize.workflow_task_timeout.FromTimedelta(begun.task_timeout or timedelta(seconds=10))
        for name, limit in (
            ("workflow_execution_timeout", begun.execution_timeout),
            ("workflow_run_timeout", begun.run_timeout),
        ):
            if limit:
                getattr(initialize, name).FromTimedelta(limit)
        if begun.parent:
            above = initialize.parent_workflow_info
            parent = begun.parent[0]
            above.namespace, above.workflow_id, above.run_id = self.server.namespace, parent.id, parent.run_id
            root = self.root
            initialize.root_workflow.workflow_id, initialize.root_workflow.run_id = root.id, root.run_id
        if begun.execution_timeout:
            left = self.began + begun.execution_timeout - self.started
            self._ends.append(self.server.clock.after(left, self._time_out, is_skipped_to=False))
        if begun.run_timeout:
            self._ends.append(self.server.clock.after(begun.run_timeout, self._time_out, is_skipped_to=False))
        job = WorkflowActivationJob(initialize_workflow=initialize)
        if begun.delay:
            self.server.clock.after(begun.delay, lambda: self.tell(job))
        else:
            self.jobs.append(job)
        for update in list(self.updates.values()):
            if not update.is_delivered:
                self._bring(update)

    def _time_out(self) -> None:
        if self.is_open:
            self.record("WORKFLOW_EXECUTION_TIMED_OUT")
            failure = Failure(message="workflow timeout", timeout_failure_info=TimeoutFailureInfo())
            self._close(STATUS.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, failure=failure)

    def _end(self, command: Any) -> None:
        kind = command.WhichOneof("variant")
        if kind == "complete_workflow_execution":
            result = command.complete_workflow_execution.result
            self.record("WORKFLOW_EXECUTION_COMPLETED", result=Payloads(payloads=[result]))
            self._close(STATUS.WORKFLOW_EXECUTION_STATUS_COMPLETED, result=result)
        elif kind == "fail_workflow_execution":
            failure = command.fail_workflow_execution.failure
            self.record("WORKFLOW_EXECUTION_FAILED", failure=failure)
            self._close(STATUS.WORKFLOW_EXECUTION_STATUS_FAILED, failure=failure)
        elif kind == "cancel_workflow_execution":
            self.record("WORKFLOW_EXECUTION_CANCELED")
            self._close(STATUS.WORKFLOW_EXECUTION_STATUS_CANCELED)
        else:
            self._continue(command.continue_as_new_workflow_execution)

    def _continue(self, command: Any) -> None:
        begun = self.begun
        left = [job for job in self.jobs if job.HasField("signal_workflow")]
        waiting = self.queries
        self.queries = []
        after = Beginning(
            id=self.id,
            type=command.workflow_type or self.type,
            queue=command.task_queue or self.queue,
            arguments=command.arguments,
            memo=dict(command.memo) or self.memo,
            search_attributes=dict(command.search_attributes.indexed_fields) or self.search_attributes,
            headers=command.headers,
            identity=begun.identity,
            execution_timeout=begun.execution_timeout,
            run_timeout=command.workflow_run_timeout.ToTimedelta() or begun.run_timeout,
            task_timeout=begun.task_timeout,
            priority=begun.priority,
            parent=begun.parent,
            before=self,
        )
        self._close(STATUS.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, event=False)
        later = self.server.begin(after)
        self.record(
            "WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
            new_execution_run_id=later.run_id,
            workflow_type={"name": later.type},
            task_queue={"name": later.queue},
            input=Payloads(payloads=command.arguments),
        )
        if begun.parent and begun.parent[0].children.get(begun.parent[1]) is self:
            begun.parent[0].children[begun.parent[1]] = later
            later.cancellation = self.cancellation
        for job in left:
            signal = job.signal_workflow
            later.signal(signal.signal_name, signal.input, signal.identity, signal.headers)
        later.queries.extend(waiting)
        self.server.wake(later)
        self.closed.set()

    def _close(
        self,
        status: STATUS.ValueType,
        *,
        result: Payload | None = None,
        failure: Failure | None = None,
        event: bool = True,
    ) -> None:
        self.status, self.close_time = status, self.server.clock.now()
        self.jobs.clear()
        for timer in (*self.timers.values(), *self._ends):
            timer.cancel()
        for activity in list(self.activities.values()):
            activity.forget()
        self.activities.clear()
        is_over = status != STATUS.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
        for update in self.updates.values():
            if not update.accepted.done() and is_over:
                self.server.refuse(update.accepted, "workflow execution already completed")
            if not update.outcome.done() and (update.accepted.done() and is_over):
                text = "Workflow Update failed because the Workflow completed before the Update completed."
                info = ApplicationFailureInfo(type="AcceptedUpdateCompletedWorkflow", non_retryable=True)
                _settle(update.outcome, Outcome(failure=Failure(message=text, application_failure_info=info)))
        for child in list(self.children.values()):
            policy = child.begun.parent[2] if child.begun.parent else 0
            newest = self.server.newest(child.id)
            if policy == ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL:
                newest.cancel("by parent close policy")
            elif policy != ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON:
                newest.terminate("by parent close policy")
        if is_over and self.begun.parent:
            parent, seq, _ = self.begun.parent
            parent.resolve_child(self, seq, status, result, failure)
        if event:
            self.closed.set()
        self.server.wake(self)


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)

"""A Temporal server in this process, as far as workers and clients of one test need it."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from datetime import timedelta
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from temporalio.api.common.v1 import (
    ActivityType,
    GrpcStatus,
    Memo,
    Payload,
    Payloads,
    SearchAttributes,
    WorkflowExecution,
    WorkflowType,
)
from temporalio.api.enums.v1 import (
    HistoryEventFilterType,
    PendingActivityState,
    UpdateWorkflowExecutionLifecycleStage,
    WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
)
from temporalio.api.errordetails.v1 import WorkflowExecutionAlreadyStartedFailure
from temporalio.api.history.v1 import History
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueResponse,
    DescribeWorkflowExecutionResponse,
    GetSystemInfoResponse,
    GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseResponse,
    PollWorkflowExecutionUpdateResponse,
    QueryWorkflowResponse,
    RequestCancelWorkflowExecutionResponse,
    SignalWithStartWorkflowExecutionResponse,
    SignalWorkflowExecutionResponse,
    StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionResponse,
    UpdateWorkflowExecutionResponse,
)
from temporalio.bridge import worker as bridge
from temporalio.bridge.proto.workflow_activation import QueryWorkflow, WorkflowActivationJob
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, _BridgeServiceClient

from tests.kit.in_process.activity import Activity
from tests.kit.in_process.clock import Clock
from tests.kit.in_process.core import Core
from tests.kit.in_process.execution import STATUS, Beginning, Execution, Query, Update

QUERY_SECONDS = 10.0
"""How long a query waits for a worker."""
UPDATE_SECONDS = 20.0
"""How long the answer to an update is held back until it has come as far as is asked."""
STAGE = UpdateWorkflowExecutionLifecycleStage
_REUSE, _CONFLICT = WorkflowIdReusePolicy, WorkflowIdConflictPolicy
_CLOSE_EVENT = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
_create = bridge.Worker.create


class Server:
    """Executions, task queues, and each call of the API that there is. Needs a running event loop."""

    namespace = "default"

    def __init__(self) -> None:
        self.clock = Clock()
        self._runs: dict[str, list[Execution]] = {}
        self._cores: list[Core] = []
        self._offered = deque[Activity]()
        self._waking: dict[str, Execution] = {}
        self._awaited = 0
        self._is_dispatching = False
        self.defect: BaseException | None = None

    def client(self, converter: DataConverter, identity: str = "tester@tests") -> Client:
        """A client of this server."""
        return Client(_Service(self, identity), namespace=self.namespace, data_converter=converter)

    def stop(self) -> None:
        """End its timers."""
        self.clock.stop()

    # Executions

    def find(self, wanted: WorkflowExecution) -> Execution | None:
        """A run by its id, or the newest of the workflow id."""
        runs = self._runs.get(wanted.workflow_id, [])
        if wanted.run_id:
            return next((each for each in runs if each.run_id == wanted.run_id), None)
        return runs[-1] if runs else None

    def newest(self, workflow_id: str) -> Execution:
        """The newest run of a workflow."""
        return self._runs[workflow_id][-1]

    def begin(self, begun: Beginning) -> Execution:
        """Begin a run."""
        run = Execution(self, begun)
        self._runs.setdefault(begun.id, []).append(run)
        self.wake(run)
        return run

    def may_start(self, workflow_id: str, reuse: WorkflowIdReusePolicy.ValueType) -> bool:
        """Whether another workflow may have this id now."""
        runs = self._runs.get(workflow_id)
        if not runs:
            return True
        if runs[-1].is_open:
            return False
        has_completed = runs[-1].status == STATUS.WORKFLOW_EXECUTION_STATUS_COMPLETED
        only_failed = reuse == _REUSE.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
        return reuse != _REUSE.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE and not (only_failed and has_completed)

    # Workers

    def core(self, config: bridge.WorkerConfig) -> Core:
        """The core of a worker made with a client of this server."""
        return Core(self, config)

    def joined(self, core: Core) -> None:
        """A worker polls."""
        self._cores.append(core)
        self.dispatch()

    def left(self, core: Core) -> None:
        """A worker polls no more."""
        self._cores = [each for each in self._cores if each is not core]

    def offer(self, activity: Activity) -> None:
        """Put an activity into its queue."""
        self._offered.append(activity)
        self.dispatch()

    def withdraw(self, activity: Activity) -> None:
        """Take an activity out of its queue."""
        if activity in self._offered:
            self._offered.remove(activity)

    def wake(self, run: Execution) -> None:
        """A run has something to be told."""
        if run.jobs or run.queries:
            self._waking[run.run_id] = run
            self.dispatch()

    def dispatch(self) -> None:
        """Give out what there is, soon."""
        if not self._is_dispatching:
            self._is_dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_dispatching = False
        for run in list(self._waking.values()):
            if run.is_at_work or run.is_resting:
                continue
            core = run.core if run.core in self._cores else self._core_for(run.queue)
            if core is not None:
                del self._waking[run.run_id]
                core.take(run)
        left = deque[Activity]()
        while self._offered:
            activity = self._offered.popleft()
            takers = [
                each for each in self._cores if each.queue == activity.queue and each.runs_activities and each.has_slot
            ]
            if takers:
                self._turn(takers[0])
                takers[0].start(activity)
            else:
                left.append(activity)
        self._offered = left
        if self._awaited and not self._is_busy:
            self.clock.skip()

    def _core_for(self, queue: str) -> Core | None:
        found = next((each for each in self._cores if each.queue == queue and each.runs_workflows), None)
        if found is not None:
            self._turn(found)
        return found

    def _turn(self, core: Core) -> None:
        """Others come first next time."""
        self._cores.remove(core)
        self._cores.append(core)

    @property
    def _is_busy(self) -> bool:
        return bool(self._waking) or any(each.is_busy for each in self._cores)

    # The API

    async def call(self, rpc: str, request: Any, timeout: timedelta | None) -> Message:
        """Answer a call. Raises RPCError."""
        if self.defect is not None:
            raise AssertionError("the in-process server has a defect") from self.defect
        answer = getattr(self, f"_{rpc}", None)
        if answer is None:
            raise error(RPCStatusCode.UNIMPLEMENTED, f"no {rpc} in process: mark the test on_server")
        seconds = timeout.total_seconds() if timeout else None
        try:
            found: Message = await asyncio.wait_for(answer(request), seconds)
        except TimeoutError:
            raise error(RPCStatusCode.DEADLINE_EXCEEDED, f"{rpc} took too long") from None
        return found

    def refuse(self, future: asyncio.Future[Any], text: str, *, is_query: bool = False) -> None:
        """Fail what waits for an answer."""
        if not future.done():
            future.set_exception(error(RPCStatusCode.INVALID_ARGUMENT if is_query else RPCStatusCode.NOT_FOUND, text))
            future.exception()  # nobody may wait for it

    async def _get_system_info(self, _: Any) -> GetSystemInfoResponse:
        return GetSystemInfoResponse(server_version="in-process")

    async def _start_workflow_execution(self, request: Any) -> StartWorkflowExecutionResponse:
        run, is_new = self._start(request)
        return StartWorkflowExecutionResponse(run_id=run.run_id, started=is_new)

    def _start(self, request: Any) -> tuple[Execution, bool]:
        runs = self._runs.get(request.workflow_id)
        if runs and runs[-1].is_open:
            policy = request.workflow_id_conflict_policy
            if policy == _CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
                return runs[-1], False
            if (
                policy == _CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
                or request.workflow_id_reuse_policy == _REUSE.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING
            ):
                runs[-1].terminate("TerminateIfRunning WorkflowIdReusePolicy Policy")
        if not self.may_start(request.workflow_id, request.workflow_id_reuse_policy):
            last = self.newest(request.workflow_id)
            details = WorkflowExecutionAlreadyStartedFailure(run_id=last.run_id)
            raise error(RPCStatusCode.ALREADY_EXISTS, "Workflow execution already started", details)
        begun = Beginning(
            id=request.workflow_id,
            type=request.workflow_type.name,
            queue=request.task_queue.name,
            arguments=request.input.payloads,
            memo=request.memo.fields,
            search_attributes=request.search_attributes.indexed_fields,
            headers=request.header.fields,
            identity=request.identity,
            execution_timeout=request.workflow_execution_timeout.ToTimedelta(),
            run_timeout=request.workflow_run_timeout.ToTimedelta(),
            task_timeout=request.workflow_task_timeout.ToTimedelta(),
            priority=request.priority,
            delay=request.workflow_start_delay.ToTimedelta(),
        )
        return self.begin(begun), True

    async def _signal_with_start_workflow_execution(self, request: Any) -> SignalWithStartWorkflowExecutionResponse:
        runs = self._runs.get(request.workflow_id)
        run, is_new = (runs[-1], False) if runs and runs[-1].is_open else self._start(request)
        run.signal(request.signal_name, request.signal_input.payloads, request.identity, request.header.fields)
        return SignalWithStartWorkflowExecutionResponse(run_id=run.run_id, started=is_new)

    async def _signal_workflow_execution(self, request: Any) -> SignalWorkflowExecutionResponse:
        run = self._open(request.workflow_execution)
        run.signal(request.signal_name, request.input.payloads, request.identity, request.header.fields)
        return SignalWorkflowExecutionResponse()

    async def _request_cancel_workflow_execution(self, request: Any) -> RequestCancelWorkflowExecutionResponse:
        self._open(request.workflow_execution).cancel(request.reason)
        return RequestCancelWorkflowExecutionResponse()

    async def _terminate_workflow_execution(self, request: Any) -> TerminateWorkflowExecutionResponse:
        self._open(request.workflow_execution).terminate(request.reason, request.identity)
        return TerminateWorkflowExecutionResponse()

    async def _query_workflow(self, request: Any) -> QueryWorkflowResponse:
        run = self._known(request.execution)
        query = QueryWorkflow(
            query_id=uuid.uuid4().hex,
            query_type=request.query.query_type,
            arguments=request.query.query_args.payloads,
        )
        for name, payload in request.query.header.fields.items():
            query.headers[name].CopyFrom(payload)
        if run.failed_tasks:
            raise error(
                RPCStatusCode.FAILED_PRECONDITION, "Cannot query workflow due to Workflow Task in failed state."
            )
        waiting = Query(WorkflowActivationJob(query_workflow=query), asyncio.get_running_loop().create_future())
        run.queries.append(waiting)
        self.wake(run)
        answer: Payload = await asyncio.wait_for(waiting.answer, QUERY_SECONDS)
        return QueryWorkflowResponse(query_result=Payloads(payloads=[answer]))

    async def _update_workflow_execution(self, request: Any) -> UpdateWorkflowExecutionResponse:
        run = self._known(request.workflow_execution)
        known = run.updates.get(request.request.meta.update_id)
        if known is None and not run.is_open:
            raise error(RPCStatusCode.NOT_FOUND, "workflow execution already completed")
        update = known or run.update(request.request)
        stage = await self._come(update, request.wait_policy.lifecycle_stage)
        response = UpdateWorkflowExecutionResponse(stage=stage)
        self._about(response, run, update)
        return response

    async def _poll_workflow_execution_update(self, request: Any) -> PollWorkflowExecutionUpdateResponse:
        run = self._known(request.update_ref.workflow_execution)
        update = run.updates.get(request.update_ref.update_id)
        if update is None:
            raise error(RPCStatusCode.NOT_FOUND, "update not found")
        response = PollWorkflowExecutionUpdateResponse(
            stage=await self._come(update, request.wait_policy.lifecycle_stage)
        )
        self._about(response, run, update)
        return response

    async def _come(self, update: Update, wanted: STAGE.ValueType) -> STAGE.ValueType:
        """Wait until an update has come to a stage, for a while; returns the one that it has."""
        completed = STAGE.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED
        waiting = update.outcome if wanted == completed else update.accepted
        await asyncio.wait([waiting, update.accepted], timeout=UPDATE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        if update.accepted.done():
            update.accepted.result()
        if update.outcome.done():
            return completed
        if update.accepted.done():
            return STAGE.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
        return STAGE.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED

    def _about(self, response: Any, run: Execution, update: Update) -> None:
        response.update_ref.update_id = update.id
        response.update_ref.workflow_execution.workflow_id = run.id
        response.update_ref.workflow_execution.run_id = run.run_id
        if update.outcome.done():
            response.outcome.CopyFrom(update.outcome.result())

    async def _get_workflow_execution_history(self, request: Any) -> GetWorkflowExecutionHistoryResponse:
        run = self._known(request.execution)
        if request.wait_new_event:
            self._awaited += 1
            self.dispatch()
            try:
                await run.closed.wait()
            finally:
                self._awaited -= 1
        is_end = request.history_event_filter_type == _CLOSE_EVENT
        return GetWorkflowExecutionHistoryResponse(history=History(events=run.events[-1:] if is_end else run.events))

    async def _get_workflow_execution_history_reverse(self, request: Any) -> GetWorkflowExecutionHistoryReverseResponse:
        run = self._known(request.execution)
        return GetWorkflowExecutionHistoryReverseResponse(history=History(events=reversed(run.events)))

    async def _describe_workflow_execution(self, request: Any) -> DescribeWorkflowExecutionResponse:
        run = self._known(request.execution)
        info = WorkflowExecutionInfo(
            type=WorkflowType(name=run.type),
            status=run.status,
            history_length=len(run.events),
            history_size_bytes=run.size,
            task_queue=run.queue,
            first_run_id=run.first_run_id,
            memo=Memo(fields=run.memo),
            search_attributes=SearchAttributes(indexed_fields=run.search_attributes),
            priority=run.begun.priority,
        )
        info.execution.workflow_id, info.execution.run_id = run.id, run.run_id
        info.start_time.FromDatetime(run.started)
        info.execution_time.FromDatetime(run.started)
        if run.close_time is not None:
            info.close_time.FromDatetime(run.close_time)
        if run.begun.parent:
            above = run.begun.parent[0]
            info.parent_execution.workflow_id, info.parent_execution.run_id = above.id, above.run_id
        root = run.root
        info.root_execution.workflow_id, info.root_execution.run_id = root.id, root.run_id
        response = DescribeWorkflowExecutionResponse(workflow_execution_info=info)
        response.execution_config.task_queue.name = run.queue
        response.execution_config.workflow_execution_timeout.FromTimedelta(run.begun.execution_timeout)
        response.execution_config.workflow_run_timeout.FromTimedelta(run.begun.run_timeout)
        for each in run.activities.values():
            if isinstance(each, Activity):
                response.pending_activities.append(_pending(each))
        for child in run.children.values():
            response.pending_children.add(workflow_id=child.id, run_id=child.run_id, workflow_type_name=child.type)
        return response

    async def _describe_task_queue(self, request: Any) -> DescribeTaskQueueResponse:
        response = DescribeTaskQueueResponse()
        for each in self._cores:
            if each.queue == request.task_queue.name:
                poller = response.pollers.add(identity=each.identity)
                poller.last_access_time.FromDatetime(self.clock.peek())
        return response

    def _known(self, wanted: WorkflowExecution) -> Execution:
        run = self.find(wanted)
        if run is None:
            raise error(RPCStatusCode.NOT_FOUND, f"workflow not found for ID: {wanted.workflow_id}")
        return run

    def _open(self, wanted: WorkflowExecution) -> Execution:
        run = self._known(wanted)
        if not run.is_open:
            raise error(RPCStatusCode.NOT_FOUND, "workflow execution already completed")
        return run


class _Service(_BridgeServiceClient):
    """The service of a client that calls an in-process server."""

    def __init__(self, server: Server, identity: str) -> None:
        super().__init__(ConnectConfig(target_host="in-process:0", identity=identity))
        self._server = server
        self._bridge_client = server  # type: ignore[assignment]

    async def _rpc_call(  # type: ignore[override]
        self, *, rpc: str, req: Message, timeout: timedelta | None, **_: Any
    ) -> Any:
        copy = type(req)()
        copy.CopyFrom(req)
        return await self._server.call(rpc, copy, timeout)


def error(status: RPCStatusCode, text: str, *details: Message) -> RPCError:
    """A refusal as a server's."""
    whole = GrpcStatus(code=int(status), message=text)
    for each in details:
        packed = AnyMessage()
        packed.Pack(each)
        whole.details.append(packed)
    return RPCError(text, status, whole.SerializeToString())


def _pending(activity: Activity) -> PendingActivityInfo:
    states = PendingActivityState
    info = PendingActivityInfo(
        activity_id=activity.command.activity_id,
        activity_type=ActivityType(name=activity.command.activity_type),
        state=states.PENDING_ACTIVITY_STATE_STARTED if activity.is_started else states.PENDING_ACTIVITY_STATE_SCHEDULED,
        attempt=activity.attempt,
        maximum_attempts=activity.command.retry_policy.maximum_attempts,
        heartbeat_details=Payloads(payloads=activity.beat_details),
    )
    info.scheduled_time.FromDatetime(activity.scheduled)
    if activity.is_cancelled:
        info.state = states.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
    if activity.last_failure is not None:
        info.last_failure.CopyFrom(activity.last_failure)
    return info


def _core_of(client: Any, config: bridge.WorkerConfig) -> bridge.Worker:
    """The core of a worker: of an in-process server, if its client is one's."""
    return client.core(config) if isinstance(client, Server) else _create(client, config)


# The SDK makes a worker's core itself and takes no other: this is the one place of it that is replaced.
bridge.Worker.create = staticmethod(_core_of)  # type: ignore[method-assign]

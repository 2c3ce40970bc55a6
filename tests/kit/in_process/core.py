"""What the SDK's core is to a worker, for workers of an in-process server.

A worker polls tasks from it and reports what came of them. It keeps runs in the worker's cache, replays those that are
not there from their workflow tasks, and compares their commands with those of the first time.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from temporalio.api.failure.v1 import Failure
from temporalio.bridge import worker as bridge
from temporalio.bridge.proto import ActivityHeartbeat, ActivityTaskCompletion, NamespaceInfo
from temporalio.bridge.proto.activity_task import ActivityCancelReason, ActivityTask
from temporalio.bridge.proto.workflow_activation import (
    NotifyHasPatch,
    RemoveFromCache,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.bridge.worker import PollShutdownError  # type: ignore[attr-defined]

from tests.kit.in_process.activity import Activity, Attempts, LocalActivity, cancel_of
from tests.kit.in_process.execution import Execution, Query, Task

if TYPE_CHECKING:
    from tests.kit.in_process.server import Server

_ABOUT = ("seq", "activity_id", "activity_type", "workflow_id", "workflow_type", "signal_name", "patch_id")
"""Fields of commands by which a replay compares them."""
RETRY = 0.02, 2.0
"""Seconds until a workflow task that failed is tried again: the first time, and at most."""


class Core(bridge.Worker):
    """The core of one worker."""

    def __init__(self, server: Server, config: bridge.WorkerConfig) -> None:
        self.server, self.queue = server, config.task_queue
        self.identity = config.identity_override or "worker"
        self.runs_workflows = config.task_types.enable_workflows
        self.runs_activities = config.task_types.enable_remote_activities
        slots = config.tuner.activity_slot_supplier
        self._slots = slots.num_slots if isinstance(slots, bridge.FixedSizeSlotSupplier) else 100
        self._cached_most = config.max_cached_workflows
        self._grace = config.graceful_shutdown_period_millis / 1000
        self.is_up = False
        self._activations = asyncio.Queue[WorkflowActivation | None]()
        self._tasks = asyncio.Queue[ActivityTask | None]()
        self._completions: dict[str, asyncio.Future[WorkflowActivationCompletion]] = {}
        self._attempts: dict[bytes, Attempts] = {}
        self._cached: dict[str, Execution] = {}
        self._at_work = set[asyncio.Task[None]]()
        self._idle = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    # What a worker calls

    async def validate(self) -> NamespaceInfo:
        """The worker begins."""
        self.is_up = True
        self.server.joined(self)
        return NamespaceInfo()

    async def poll_workflow_activation(self) -> WorkflowActivation:
        """The next activation of a run."""
        act = await self._activations.get()
        if act is None:
            raise PollShutdownError
        return act

    async def poll_activity_task(self) -> ActivityTask:
        """The next activity to start or to cancel."""
        task = await self._tasks.get()
        if task is None:
            raise PollShutdownError
        return task

    async def complete_workflow_activation(self, comp: WorkflowActivationCompletion) -> None:
        """What came of an activation."""
        if waiting := self._completions.pop(comp.run_id, None):
            waiting.set_result(comp)

    async def complete_activity_task(self, comp: ActivityTaskCompletion) -> None:
        """What came of an attempt."""
        attempt = self._attempts.pop(comp.task_token, None)
        if isinstance(attempt, Activity | LocalActivity):
            attempt.complete(comp.task_token, comp.result)
        if not self._attempts:
            self._idle.set()
        self.server.dispatch()

    def record_activity_heartbeat(self, comp: ActivityHeartbeat) -> None:
        """A heartbeat of an attempt."""
        attempt = self._attempts.get(comp.task_token)
        if isinstance(attempt, Activity) and (told := attempt.beat(comp.task_token, comp.details)):
            self._tasks.put_nowait(ActivityTask(task_token=comp.task_token, cancel=told))

    def request_workflow_eviction(self, run_id: str) -> None:
        """Drop a run from the cache before its next task."""
        if run := self._cached.get(run_id):
            run.is_suspected = True

    def replace_client(self, client: Any) -> None:
        """Another client of the same server makes no difference."""

    def initiate_shutdown(self) -> None:
        """End: no new tasks; what is under way has its grace."""
        if self.is_up or self._stopping is None:
            self.is_up = False
            self.server.left(self)
            self._stopping = asyncio.create_task(self._stop())

    async def finalize_shutdown(self) -> None:
        """It has ended."""
        if self._stopping is not None:
            await self._stopping

    # What the server gives it

    @property
    def has_slot(self) -> bool:
        """Whether it may take one more activity."""
        return sum(not each.is_local for each in self._attempts.values()) < self._slots

    @property
    def is_busy(self) -> bool:
        """Whether something is under way here."""
        return bool(self._at_work) or any(each.is_current(token) for token, each in self._attempts.items())

    def start(self, activity: Activity) -> None:
        """Carry out an attempt of an activity."""
        token = uuid.uuid4().bytes
        self._attempts[token] = activity
        self._idle.clear()
        self._tasks.put_nowait(activity.start(self, token))

    def start_local(self, activity: LocalActivity) -> bytes:
        """Carry out an attempt of a local activity; returns its token."""
        token = uuid.uuid4().bytes
        self._attempts[token] = activity
        self._idle.clear()
        self._tasks.put_nowait(activity.task(token))
        return token

    def cancel(self, token: bytes, reason: ActivityCancelReason.ValueType) -> None:
        """Cancel an attempt."""
        if token in self._attempts:
            self._tasks.put_nowait(ActivityTask(task_token=token, cancel=cancel_of(reason)))

    def take(self, run: Execution) -> None:
        """Carry out a workflow task of a run."""
        run.is_at_work, run.core = True, self
        task = asyncio.create_task(self._work(run))
        self._at_work.add(task)

        def done(_: asyncio.Task[None]) -> None:
            self._at_work.discard(task)
            self.server.defect = task.exception() or self.server.defect
            run.is_at_work = False
            if not self.is_up and run.core is self:
                run.core = None
            if run.is_open or run.queries:
                self.server.wake(run)
            self.server.dispatch()

        task.add_done_callback(done)

    # One workflow task

    async def _work(self, run: Execution) -> None:
        if run.is_suspected:
            await self._evict(run)
        if run.run_id not in self._cached and not await self._replayed(run):
            return
        while run.jobs and run.is_open:
            if not await self._carried_out(run):
                return
        for query in run.queries[:]:
            run.queries.remove(query)
            await self._answer(run, query)
        if len(self._cached) > self._cached_most:
            await self._evict(run)

    async def _carried_out(self, run: Execution) -> bool:
        """Bring what there is to the run, and do what it decides; false: the task has failed."""
        jobs, run.jobs = run.jobs, []
        goes_on = all(job.HasField("resolve_activity") and job.resolve_activity.is_local for job in jobs)
        if not goes_on:
            scheduled = run.record("WORKFLOW_TASK_SCHEDULED", task_queue={"name": run.queue}, attempt=1)
            run.record("WORKFLOW_TASK_STARTED", scheduled_event_id=scheduled.event_id, identity=self.identity)
        act = run.activation(jobs)
        for job in act.jobs:
            if job.HasField("do_update"):
                run.updates[job.do_update.id].is_delivered = True
        self._cached[run.run_id] = run
        done = await self._activate(act)
        if not run.is_open:  # terminated meanwhile
            return True
        if done.HasField("failed"):
            run.jobs = [*jobs, *run.jobs]
            await self._failed(run, done.failed.failure)
            return False
        commands = list(done.successful.commands)
        task = Task(
            activation=act,
            commands=_names(commands),
            flags=list(done.successful.used_internal_flags),
            patches=[each.set_patch_marker.patch_id for each in commands if each.HasField("set_patch_marker")],
        )
        run.tasks.append(task)
        run.failed_tasks = 0
        if not goes_on:
            run.record("WORKFLOW_TASK_COMPLETED", identity=self.identity)
        run.carry_out(commands)
        return True

    async def _failed(self, run: Execution, failure: Failure) -> None:
        run.record("WORKFLOW_TASK_FAILED", failure=failure, identity=self.identity, cause=5)
        run.failed_tasks += 1
        await self._evict(run)
        run.core = None
        run.is_resting = True

        def again() -> None:
            run.is_resting = False
            self.server.wake(run)

        first, most = RETRY
        asyncio.get_running_loop().call_later(min(first * 2**run.failed_tasks, most), again)

    async def _replayed(self, run: Execution) -> bool:
        """Bring the run into the cache as it was; false: its task has failed."""
        for task in run.tasks:
            if not task.activation.jobs:
                continue
            act = _copy(task.activation)
            act.is_replaying = True
            act.available_internal_flags.extend(task.flags)
            for name in task.patches:
                act.jobs.insert(0, WorkflowActivationJob(notify_has_patch=NotifyHasPatch(patch_id=name)))
            for job in act.jobs:
                if job.HasField("do_update"):
                    job.do_update.run_validator = False
            done = await self._activate(act)
            self._cached[run.run_id] = run
            if done.HasField("failed"):
                await self._failed(run, done.failed.failure)
                return False
            if (names := _names(done.successful.commands)) != task.commands:
                text = f"[TMPRL1100] Nondeterminism error: {names} on replay, {task.commands} the first time"
                await self._failed(run, Failure(message=text))
                return False
        for each in list(run.activities.values()):
            if isinstance(each, LocalActivity) and (each.core is None or not each.core.is_up):
                each.start(self)
        return True

    async def _answer(self, run: Execution, query: Query) -> None:
        act = run.activation([query.job])
        act.is_replaying = not run.jobs and not run.is_open
        done = await self._activate(act)
        if query.answer.done():
            return
        if done.HasField("failed"):
            self.server.refuse(query.answer, done.failed.failure.message, is_query=True)
            return
        for command in done.successful.commands:
            if command.HasField("respond_to_query"):
                answer = command.respond_to_query
                if answer.HasField("succeeded"):
                    query.answer.set_result(answer.succeeded.response)
                else:
                    self.server.refuse(query.answer, answer.failed.message, is_query=True)
                return

    async def _evict(self, run: Execution) -> None:
        run.is_suspected = False
        if self._cached.pop(run.run_id, None):
            job = WorkflowActivationJob(remove_from_cache=RemoveFromCache(message="evicted"))
            await self._activate(WorkflowActivation(run_id=run.run_id, jobs=[job]))

    async def _activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        waiting: asyncio.Future[WorkflowActivationCompletion] = asyncio.get_running_loop().create_future()
        self._completions[act.run_id] = waiting
        self._activations.put_nowait(_copy(act))
        return await waiting

    async def _stop(self) -> None:
        while self._at_work:
            await asyncio.wait(list(self._at_work))
        if self._attempts:
            try:
                await asyncio.wait_for(self._idle.wait(), self._grace)
            except TimeoutError:
                for token in list(self._attempts):
                    self.cancel(token, ActivityCancelReason.WORKER_SHUTDOWN)
        while self._attempts:
            self._idle.clear()
            await self._idle.wait()
        self._tasks.put_nowait(None)
        for run in list(self._cached.values()):
            await self._evict(run)
            if run.core is self:
                run.core = None
                self.server.wake(run)
        self._activations.put_nowait(None)


def _copy(act: WorkflowActivation) -> WorkflowActivation:
    """The worker decodes the payloads of an activation in place."""
    copy = WorkflowActivation()
    copy.CopyFrom(act)
    return copy


def _names(commands: Iterable[Any]) -> list[str]:
    """What must be the same in a replay: the commands, in order, and what each is about."""
    found = []
    for command in commands:
        kind = str(command.WhichOneof("variant"))
        if kind == "respond_to_query":
            continue
        value = getattr(command, kind)
        about = [
            str(getattr(value, name))
            for name in (
                "seq",
                "activity_id",
                "activity_type",
                "workflow_id",
                "workflow_type",
                "signal_name",
                "patch_id",
            )
            if name in value.DESCRIPTOR.fields_by_name
        ]
        if kind != "update_response" or not value.HasField("rejected"):
            found.append(" ".join((kind, *about)))
    return found

"""Runs workflows: outside the SDK's sandbox, steps shared fairly, no per-payload contexts, a longer deadlock timeout.

The sandbox loads the modules that define workflows again for every run, and puts Python code in the place of
`isinstance`, `__import__` and `sys.modules` while a workflow runs. That took a fifth to a third of a worker's CPU time
per step. It finds clocks, randomness and I/O in those modules only; `tests/test_imports.py` finds them in all of plans/
and workflows/, and state that runs would share. Recorded histories are replayed inside it as well (`tests/replay`).

A worker may take the steps that a workflow task starts into its own free slots ("eager"), without a dispatch by the
server each. Alone on its queue it takes as many as it has slots for. As soon as others poll the queue it takes
EAGER_SHARED of each task and leaves the rest to whoever is free: otherwise a plan would fill one worker while the
others look on.

A workflow of a worker with a version stays with that version, and its next run would too. So the task that continues as
new reports that it may move, once new plans go to a newer version: the server then starts the next run there. Older
servers know no other way, and the history does not depend on it.

Before each payload it encodes or decodes, the SDK asks the workflow instance for the payload's serialization context
(`WithSerializationContext`), which looks up the command the payload belongs to. Our converters ignore the context, so
the request is answered here. A storage driver that files payloads by workflow, such as S3's, still gets its context
from the workflow.

What one workflow task brings, the workflow gets at once (SINGLE_BATCH). The SDK's default gives it the signals first
and a cancellation only after it has run: a run that continued as new because of a signal never heard of a cancellation
that came with it, and Temporal does not carry one over to the next run.

The deadlock detector allows a workflow as long as its workflow task may take. The SDK's two seconds would fail the task
and start over: on a busy machine a plan of 10,000 steps would never reach its first step. Past the limit the task
fails, and the workflow leaves the cache once its thread is done. The SDK would also raise an exception in that thread,
wherever it is. In a callback of the garbage collector nobody catches it: the state of the workflow is half changed, and
its eviction is retried for ever. A worker that got no processor for ten seconds (a busy machine, a suspended laptop)
lost plans that way until it was restarted. So nothing is raised in the threads of our workflows, which have no endless
loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client
from temporalio.converter import DataConverter, StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import (
    HandleQueryInput,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInstanceDetails,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import Info

from plansurvive.plans.signature import SEED_OF_START
from plansurvive.runtime.conversion import visits
from plansurvive.runtime.service.early_events import EarlyEvents, Evictions
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.task_queues import Neighbours

EAGER_SHARED = 3
"""Steps of one workflow task that a worker takes itself where others poll its queue: the SDK's default."""
THINKING_SECONDS = 10
"""Deadlock timeout in seconds: Temporal's default workflow task timeout."""
SINGLE_BATCH = 2
"""PROCESS_WORKFLOW_ACTIVATION_JOBS_AS_SINGLE_BATCH, the SDK's workflow logic flag that loses no cancellation
(temporalio/sdk-python pull request 1671; off by default in 1.35). Each history says from which task on it holds."""
_LIMIT = "_deadlock_timeout_seconds"
PASSED_THROUGH = (
    *("plansurvive", "pydantic", "pydantic_core", "annotated_types", "typing_inspection"),
    *("jmespath", "jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr", "attrs", "xxhash"),
    *("re2", "_re2", "cryptography", "_cffi_backend"),
)
"""What a sandbox passes through instead of importing it again for every workflow run: all of ours, and what it uses.

Imported again, each waiting plan would take 200 kB of memory instead of 130, and a start 20 ms instead of 2. The
sandbox does not restrict modules that are passed through; a test checks their source instead.
"""


@dataclass(frozen=True)
class SharingRunner(SandboxedWorkflowRunner):
    """The SDK's sandboxed runner, for workers that run other people's workflows too (`client.embedding.plugin`)."""

    neighbours: Neighbours = field(default_factory=Neighbours)
    evictions: Evictions = field(default_factory=Evictions)
    ours: frozenset[str] = frozenset()
    """Types of the workflows whose threads are never interrupted; other people's are as the SDK does it."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Create a sandboxed workflow instance."""
        self.evictions.began()
        inner, is_ours = super().create_instance(_with_ours(det)), det.info.workflow_type in self.ours
        return _Sharing(inner, self.neighbours, self.evictions, is_interruptible=not is_ours)


@dataclass(frozen=True)
class OwnRunner(UnsandboxedWorkflowRunner):
    """The runner of a worker of our own, for our workflows alone: outside the sandbox."""

    neighbours: Neighbours = field(default_factory=Neighbours)
    evictions: Evictions = field(default_factory=Evictions)
    needs_context: bool = True
    """Whether the converter uses the context of a payload."""
    filed_by_workflow: bool = True
    """Whether the storage driver uses the workflow a payload belongs to."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Create a workflow instance; without serialization contexts if the converter ignores them."""
        self.evictions.began()
        instance = _Sharing(super().create_instance(_with_ours(det)), self.neighbours, self.evictions)
        return instance if self.needs_context else _ContextFree(instance, self.filed_by_workflow)


def runner_for(client: Client, neighbours: Neighbours) -> OwnRunner:
    """The runner of a worker with this client."""
    return OwnRunner(
        neighbours=neighbours,
        needs_context=not needs_no_context(client.data_converter),
        filed_by_workflow=not stores_here(client),
    )


def stores_here(client: Client) -> bool:
    """Whether large payloads go to a directory, if anywhere. Storing them in parallel then costs more than it saves."""
    external = client.data_converter.external_storage
    return external is None or all(isinstance(driver, LocalDirectory) for driver in external.drivers)


def needs_no_context(converter: DataConverter) -> bool:
    """Whether the converter ignores the context of a payload."""
    return converter.with_context(WorkflowSerializationContext(namespace="any", workflow_id="any")) is converter


class _Showing(WorkflowInboundInterceptor):
    """Writes a workflow's current details when somebody looks at them, rather than after each of its tasks."""

    async def handle_query(self, input: HandleQueryInput) -> Any:
        """Answer a query; of Temporal's UI, with what the workflow says of itself now."""
        found = await super().handle_query(input)
        write = getattr(workflow.instance(), "current_details", None) if isinstance(found, WorkflowMetadata) else None
        if write is not None and isinstance(details := write(), str):
            found.current_details = details
        return found


def _with_ours(det: WorkflowInstanceDetails) -> WorkflowInstanceDetails:
    flags: frozenset[Any] = det.default_workflow_logic_flags | {SINGLE_BATCH}
    return replace(
        det, interceptor_classes=[*det.interceptor_classes, _Showing], default_workflow_logic_flags=flags,
        # A run that was reset to its first task has its new seed when the workflow is made: no callback tells it.
        extern_functions={**det.extern_functions, SEED_OF_START: lambda: det.randomness_seed},
    )  # fmt: skip


class _Sharing(WorkflowInstance):
    """A workflow instance that leaves steps and next runs to the neighbours, and the cache if it is ahead."""

    def __init__(
        self, inner: WorkflowInstance, neighbours: Neighbours, evictions: Evictions, *, is_interruptible: bool = False
    ) -> None:
        self._inner, self._neighbours, self._evictions = inner, neighbours, evictions
        self._is_interruptible = is_interruptible
        self._early = EarlyEvents(evictions.is_first)

    def activate(self, act: Any) -> Any:
        """Carry out an activation; the history does not contain this advice."""
        done = self._inner.activate(act)
        if self._early.are_answered(act):
            self._evictions.ask(act.run_id)
        if self._neighbours.are_there:
            started = [each for each in done.successful.commands if each.HasField("schedule_activity")]
            for command in started[EAGER_SHARED:]:
                command.schedule_activity.do_not_eagerly_execute = True
        if self._neighbours.are_ahead and _continues(done.successful.commands):
            done.successful.versioning_behavior = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
        return done

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        """The thread in which the SDK may raise an exception past the deadlock timeout; None: in none."""
        return self._inner.get_thread_id() if self._is_interruptible else None


def _continues(commands: Iterable[Any]) -> bool:
    return any(each.HasField("continue_as_new_workflow_execution") for each in commands)


class _ContextFree(WorkflowInstance):
    """A workflow instance that returns no serialization context; delegates everything else."""

    def __init__(self, inner: WorkflowInstance, filed_by_workflow: bool) -> None:
        self._inner, self._filed_by_workflow = inner, filed_by_workflow

    def activate(self, act: Any) -> Any:
        return self._inner.activate(act)

    def get_serialization_context(self, _: Any) -> None:
        return None

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        if self._filed_by_workflow:
            return self._inner.get_external_store_context(command_info)
        return StorageDriverStoreContext()

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()


def tuned(worker: Worker) -> Worker:
    """Set the deadlock timeout, let the runner ask for evictions, and leave out needless walks through messages.

    The SDK's only option for the first (`debug_mode`) also disables the sandbox, so this sets a private attribute; if
    an SDK version stores it elsewhere, the SDK's own timeout applies.
    """
    visits.install()
    workflows = vars(worker).get("_workflow_worker")
    runner = vars(workflows).get("_workflow_runner") if workflows is not None else None
    if isinstance(runner, SharingRunner | OwnRunner):
        runner.evictions.of(worker)
    if workflows is not None and isinstance(vars(workflows).get(_LIMIT), int):
        vars(workflows)[_LIMIT] = THINKING_SECONDS
    return worker

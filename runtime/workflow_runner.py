"""How workflows run: in the SDK's sandbox, without what our converters never ask for.

Before each payload it encodes or decodes, the SDK asks the workflow in which context the payload stands, for converters
and codecs that want to know (`WithSerializationContext`). The question runs code in the sandbox and took one seventh of
a worker's time. Ours want nothing, so it is answered here. Where large values are stored by a driver that files them
by workflow, as S3's does, that question still goes to the workflow.

And a workflow may think for as long as its workflow task may take. The SDK takes one that thinks for two seconds for
dead, fails the task and begins anew: on a busy machine a plan of ten thousand steps would never come to its first step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import Any

from temporalio.converter import DataConverter, StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import Worker, WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import Info

THINKING_SECONDS = 10
"""How long a workflow may think at a time: as long as Temporal gives a workflow task."""
_LIMIT = "_deadlock_timeout_seconds"
_PURE = (
    *("plans", "pydantic", "pydantic_core", "annotated_types", "typing_inspection"),
    *("jmespath", "jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr", "attrs", "xxhash"),
    *("re2", "_re2"),
)


def passed_through(workflows: Iterable[type]) -> tuple[str, ...]:
    """The modules that the sandbox takes as they are instead of loading them again for every run of a workflow.

    Pure code, and the modules beside those that define the workflows: loaded again, each waiting plan would take 200 kB
    of memory instead of 130, and a start 20 ms instead of 2. The sandbox does not guard what is passed through; a test
    of the imports does.
    """
    defining = {workflow.__module__ for workflow in workflows}
    packages = sorted({name.rpartition(".")[0] for name in defining})
    beside = [f"{name}.{found.name}" for name in packages for found in iter_modules(sys.modules[name].__path__)]
    return *_PURE, *(name for name in beside if name not in defining)


@dataclass(frozen=True)
class ContextFreeRunner(SandboxedWorkflowRunner):
    """The sandbox, for a converter that `needs_no_context`."""

    filed_by_workflow: bool = True
    """Whether storage wants to know whose large values it keeps."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """A workflow in the sandbox."""
        return _ContextFree(super().create_instance(det), self.filed_by_workflow)


def needs_no_context(converter: DataConverter) -> bool:
    """Whether the converter stays the same whatever the context of a payload is."""
    return converter.with_context(WorkflowSerializationContext(namespace="any", workflow_id="any")) is converter


class _ContextFree(WorkflowInstance):
    """A workflow that is not asked for contexts; everything else it answers itself."""

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


def with_patience(worker: Worker) -> Worker:
    """The worker, with that limit. The SDK has no option for it but one that also takes the sandbox away; where it
    keeps the limit elsewhere, its own holds."""
    workflows = vars(worker).get("_workflow_worker")
    if workflows is not None and isinstance(vars(workflows).get(_LIMIT), int):
        vars(workflows)[_LIMIT] = THINKING_SECONDS
    return worker

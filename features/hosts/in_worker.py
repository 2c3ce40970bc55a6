"""A host in a worker: its activities and queues, the directory of each plan, and the layer that takes checkpoints.

A worker without PLANS_HOST has the activities too, and refuses: the task goes to another worker of the queue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from plansurvive.activities.feature import InWorker, Layer
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.hosts.hosting import NO_HOST, Hosting
from plansurvive.features.hosts.settings import HostSettings
from plansurvive.plans.activity_io import Return
from plansurvive.plans.errors import ToolError
from plansurvive.plans.hosts.host import Host, HostRequest, pulse_of, queue_of_host
from plansurvive.runtime.connect import storage_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore


def queues_of_host(settings: Settings, queue: str) -> tuple[str, ...]:
    """The queues that only workers of this host poll: one for steps, one to answer on however busy they are."""
    name = settings.of(HostSettings).host
    if name is None:
        return ()
    steps = queue_of_host(queue, name)
    return steps, pulse_of(steps)


@dataclass(frozen=True)
class HostActivities:
    """The activities `take_host` and `host_pulse`."""

    hosting: Hosting | None

    @property
    def activities(self) -> list[Callable[..., object]]:
        """Both, for a worker to register."""
        return [self.take_host, self.host_pulse]

    @activity.defn(name="take_host")
    async def take_host(self, request: HostRequest) -> Host:
        """Make a directory for the plan, with the files of its last checkpoint. Raises ApplicationError with a code."""
        if self.hosting is None:
            text = "other workers of this queue have PLANS_HOST and their own workspaces; set PLANS_HOST here too"
            raise ApplicationError(text, type=NO_HOST)
        try:
            return await self.hosting.take(request, activity.info().task_queue)
        except ToolError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=not error.retryable) from None

    @activity.defn(name="host_pulse")
    async def host_pulse(self) -> str:
        """The name of the host, as a sign of life."""
        return self.hosting.name if self.hosting else ""


@dataclass(frozen=True)
class Checkpointing(Layer):
    """Takes a checkpoint of what each attempt has left."""

    hosting: Hosting

    async def attempt(self, tool: Tool, context: ToolContext, inner: Callable[[], Awaitable[Return]]) -> Return:
        """See `Hosting.kept`."""
        return await self.hosting.kept(tool, context, inner)


class Worker(InWorker):
    """A host, or a worker that shares its workspace with the others of its queue."""

    feature = "hosts"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError: a host needs a workspace."""
        super().__init__(client, settings, fault)
        self._hosting = None
        if settings.of(HostSettings).host is not None:
            values = ValueStore(storage_of(client, settings), settings.inline_bytes)
            self._hosting = Hosting.of(settings, values, Effects.of(settings))

    def activities(self) -> Sequence[Callable[..., object]]:
        """`take_host` and `host_pulse`."""
        return HostActivities(self._hosting).activities

    def queues(self, queue: str) -> Sequence[str]:
        """Those of the host."""
        return queues_of_host(self.settings, queue)

    def gives_directories(self) -> bool:
        """At a host, a plan begins in a directory of its own."""
        return self._hosting is not None

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Checkpoints, at a host."""
        return None if self._hosting is None else Checkpointing(self._hosting)


IN_WORKER = Worker

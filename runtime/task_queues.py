"""The workers that poll a task queue.

`Neighbours` keeps an eye on them for a worker, which shares the steps of its plans with others as soon as there are
some (`runtime.workflow_runner`).
"""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.plans.errors import PlanError
from plansurvive.runtime import daemon
from plansurvive.runtime.versions.routing import routing
from plansurvive.runtime.versions.version import Version

WORKER = "plans-worker-"
"""Identity prefix of our workers, followed by `<pid>@<host>`."""
SEEN_SECONDS = 90.0
"""A long poll lasts one minute: a poller not seen for longer is gone."""
TRIES, PAUSE_SECONDS = 4, 0.25
"""For a request that the server asks to retry."""
LOOK_SECONDS = 5.0
"""Between two looks at who else polls."""


class Neighbours:
    """Whether another worker polls a worker's queue for steps; until `keep_looking` has seen that, it may be so.

    `version`: of the worker's code. Only workers of its version run the steps of its plans.
    """

    def __init__(self, version: Version | None = None) -> None:
        self.version = version
        self.are_there = True
        self.are_ahead = False
        """Whether new plans go to a newer version than this worker's: its plans continue as new there."""

    async def keep_looking(self, client: Client, queue: str, identity: str, every: float = LOOK_SECONDS) -> None:
        """Look every few seconds (`every`). `identity`: the worker's own.

        While the server does not answer, nothing changes.
        """
        while True:
            with suppress(RPCError):
                found = await listeners(client, queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, version=self.version)
                self.are_there = bool(set(found) - {identity})
            if self.version is not None:
                with suppress(RPCError, PlanError):
                    known = await routing(client, self.version.name)
                    self.are_ahead = known.is_newer(known.current, self.version)
            await asyncio.sleep(every)


async def listeners(
    client: Client,
    queue: str,
    kind: TaskQueueType.ValueType = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    *,
    version: Version | None = None,
) -> list[str]:
    """Identities of the workers that poll a task queue for tasks of this kind; with a version, those of it only.

    Except workers of ours that have died on this machine.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=kind,
    )
    answer = await _described(client, request)
    pollers = [each for each in answer.pollers if version is None or _version(each) == version]
    recent = [poller.identity for poller in pollers if _age(poller) < SEEN_SECONDS]
    return sorted({identity for identity in recent if not _is_dead(identity)})


async def _described(client: Client, request: DescribeTaskQueueRequest) -> DescribeTaskQueueResponse:
    """The server's answer.

    A busy server may answer UNKNOWN, "something went wrong, please retry", and a request is CANCELLED when the
    connection it was sent on is closed.
    """
    for _ in range(TRIES - 1):
        try:
            return await client.workflow_service.describe_task_queue(request)
        except RPCError as error:
            if error.status not in (RPCStatusCode.UNKNOWN, RPCStatusCode.CANCELLED):
                raise
        await asyncio.sleep(PAUSE_SECONDS)
    return await client.workflow_service.describe_task_queue(request)


async def serves_this_machine(client: Client, queue: str) -> bool:
    """Whether a worker of the queue shares this machine's directories; true for a queue without pollers."""
    hosts = [identity.rpartition("@")[2] for identity in await listeners(client, queue)]
    return not hosts or socket.gethostname() in hosts


def _version(poller: PollerInfo) -> Version | None:
    options = poller.deployment_options
    return Version(options.deployment_name, options.build_id) if options.build_id else None


def _age(poller: PollerInfo) -> float:
    return time.time() - poller.last_access_time.ToMicroseconds() / 1_000_000


def _is_dead(identity: str) -> bool:
    """Whether the identity is that of a worker of ours on this machine that has exited."""
    pid, _, host = identity.removeprefix(WORKER).partition("@")
    if not identity.startswith(WORKER) or host != socket.gethostname() or not pid.isdigit():
        return False
    return daemon.began(int(pid)) is None

"""Who listens to a task queue."""

from __future__ import annotations

import socket
import time

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from runtime import daemon

WORKER = "plans-worker-"
"""How the identity of a worker of ours begins; its process id and its machine follow."""
SEEN_SECONDS = 90.0
"""A poll lasts a minute: who was not seen for longer does not listen any more."""


async def listeners(client: Client, queue: str) -> list[str]:
    """The identities of the workers that listen to a queue. Those of ours that died on this machine do not count."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    recent = [poller.identity for poller in answer.pollers if _age(poller) < SEEN_SECONDS]
    return sorted({identity for identity in recent if not _is_dead(identity)})


async def serves_this_machine(client: Client, queue: str) -> bool:
    """Whether a worker of the queue shares this machine's directories; a queue nobody listens to will be served so."""
    hosts = [identity.rpartition("@")[2] for identity in await listeners(client, queue)]
    return not hosts or socket.gethostname() in hosts


def _age(poller: PollerInfo) -> float:
    return time.time() - poller.last_access_time.ToMicroseconds() / 1_000_000


def _is_dead(identity: str) -> bool:
    """Whether it names a worker of ours on this machine that has ended."""
    pid, _, host = identity.removeprefix(WORKER).partition("@")
    if not identity.startswith(WORKER) or host != socket.gethostname() or not pid.isdigit():
        return False
    return daemon.began(int(pid)) is None

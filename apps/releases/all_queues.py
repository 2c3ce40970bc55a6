"""A version gets new plans once its workers listen to every task queue that those of the current version listen to.

The server refuses it before (`proposed current version is missing active task queues`), since what waits in such a
queue would find no worker. A worker opens its task queues one after the other, so after its start that soon passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from temporalio.api.deployment.v1 import WorkerDeploymentVersion as OnServer
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest
from temporalio.client import Client

from plansurvive.runtime.versions.routing import BadVersion, asked, described
from plansurvive.runtime.versions.version import UNVERSIONED, Version

_MISSING = "missing active task queues"
"""Words of the server, at versions 1.27 to 1.29."""
PATIENCE = 30.0
"""Seconds that a version's workers may take to listen to all their task queues: they need about one."""
_EVERY = 0.5


async def with_all_queues(
    client: Client,
    current: Version,
    version: Version,
    request: Callable[[], Awaitable[object]],
    patience: float = PATIENCE,
) -> None:
    """Make a request that gives a version new plans, again while its workers lack task queues of the current version.

    Raises BadVersion, which names the task queues that are missing after `patience` seconds; NoVersions.
    """
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            await asked(request())
            return
        except BadVersion as error:
            if _MISSING not in str(error):
                raise
            if asyncio.get_running_loop().time() >= deadline:
                raise await _lacking(client, current, version) from error
        await asyncio.sleep(_EVERY)


async def _lacking(client: Client, current: Version, version: Version) -> BadVersion:
    lacking = sorted(await _queues(client, current) - await _queues(client, version))
    names = ", ".join(f"{queue} ({kind})" for queue, kind in lacking) or "some that the server does not name"
    return BadVersion(
        f"Workers of {version.text} do not listen to task queues that those of {current.text} do: {names}. Their "
        "tasks would find no worker. Start workers of that version with the same "
        "PLANS_TASK_QUEUE and PLANS_QUEUES, then repeat."
    )


async def _queues(client: Client, version: Version) -> set[tuple[str, str]]:
    """The task queues of a version, each with what is taken from it: workflow or activity."""
    if version.build == UNVERSIONED:
        return set()
    on_server = OnServer(deployment_name=version.name, build_id=version.build)
    request = DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=on_server)
    answer = await described(lambda: client.workflow_service.describe_worker_deployment_version(request, retry=True))
    prefix = "TASK_QUEUE_TYPE_"
    return {
        (each.name, TaskQueueType.Name(each.type).removeprefix(prefix).lower())
        for each in answer.worker_deployment_version_info.task_queue_infos
    }

"""What the server says of the versions of a deployment, and where it sends new plans. Asks the server, whatever it is.

A server without Worker Deployments, or with them turned off, is known by its answer: NO_VERSIONS.

`initial_versioning_behavior` is unknown to servers up to 1.29, which ignore it without an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.deployment.v1 import WorkerDeploymentVersion as OnServer
from temporalio.api.taskqueue.v1 import TaskQueue, TaskQueueVersioningInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    ListWorkerDeploymentsRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.versions.version import UNVERSIONED, Version

T = TypeVar("T")
_LACKING = (RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED)
_OFF = "disabled", "not enabled"
"""Words in the answer of a server that has versions turned off."""
_NOT_FOUND = " not found"
"""Words at the end of the answer of a server that knows no such deployment or version."""
_PAUSES = 0.05, 0.2
"""Seconds before what was not found is asked for again: a continue-as-new takes milliseconds."""


class NoVersions(PlanError):
    """The server has no versions of workers, has them turned off, or does not let this user see them."""

    code = "NO_VERSIONS"


class BadVersion(PlanError):
    """A version that there is not, or that this cannot be done with now."""

    code = "BAD_VERSION"


@dataclass(frozen=True)
class Known:
    """A version that the server knows."""

    version: Version
    created: datetime
    last_current: datetime | None
    """When it was current last, as newer servers say; None: never, or the server does not say."""
    first_active: datetime | None


@dataclass(frozen=True)
class Routing:
    """Where new plans of a deployment go."""

    name: str
    current: Version
    """Its build may be `unversioned`."""
    ramping: Version | None
    percent: float
    known: tuple[Known, ...]
    token: bytes = b""

    def of(self, version: Version) -> Known:
        """What is known of a version. Raises BadVersion."""
        found = next((each for each in self.known if each.version == version), None)
        if found is None:
            names = ", ".join(each.version.text for each in self.known) or "none"
            raise BadVersion(
                f"The server knows no version {version.text}; it knows {names}. Start a worker of it first."
            )
        return found

    def is_newer(self, one: Version, other: Version) -> bool:
        """Whether the server came to know one version after the other; one that it does not know is the oldest."""
        since = {each.version: each.created for each in self.known}
        never = datetime.min.replace(tzinfo=UTC)
        return since.get(one, never) > since.get(other, never)


async def asked(answer: Awaitable[T]) -> T:
    """The answer to a request about versions. Raises NoVersions, or BadVersion with the server's reason."""
    try:
        return await answer
    except RPCError as error:
        if error.status in _LACKING or any(word in error.message.lower() for word in _OFF):
            raise NoVersions(
                f"This server has no versions of workers for us ({error.message}). Run workers without --version, "
                "or turn on `system.enableDeploymentVersions` in the server's dynamic configuration."
            ) from error
        if error.status in (RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.NOT_FOUND):
            raise BadVersion(f"The server refuses: {error.message}") from error
        raise


async def described(describe: Callable[[], Awaitable[T]]) -> T:
    """The answer to a request that describes a deployment or version. Raises NoVersions, or BadVersion.

    The server keeps each in a workflow of its own and says `not found` while that continues as new
    (service/worker/workerdeployment/client.go of servers 1.27 to 1.29), so what is not found is asked for again.
    """
    for pause in _PAUSES:
        try:
            return await asked(describe())
        except BadVersion as error:
            if _NOT_FOUND not in str(error):
                raise
        await asyncio.sleep(pause)
    return await asked(describe())


async def require(client: Client) -> None:
    """Raise NoVersions unless the server has versions of workers."""
    await names(client)


async def names(client: Client) -> list[str]:
    """The names of the deployments that the server knows, in order. Raises NoVersions."""
    found, page = [], b""
    while True:
        request = ListWorkerDeploymentsRequest(namespace=client.namespace, page_size=100, next_page_token=page)
        answer = await asked(client.workflow_service.list_worker_deployments(request, retry=True))
        found += [each.name for each in answer.worker_deployments]
        page = answer.next_page_token
        if not page:
            return sorted(found)


async def routing(client: Client, name: str) -> Routing:
    """The versions of a deployment. Raises NoVersions, BadVersion."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    answer = await described(lambda: client.workflow_service.describe_worker_deployment(request, retry=True))
    info, config = answer.worker_deployment_info, answer.worker_deployment_info.routing_config
    ramps = config.HasField("ramping_deployment_version") or config.ramping_version_percentage > 0
    return Routing(
        name=name,
        current=_read(name, config.current_deployment_version),
        ramping=_read(name, config.ramping_deployment_version) if ramps else None,
        percent=config.ramping_version_percentage,
        known=_known(info),
        token=answer.conflict_token,
    )


async def current_of(client: Client, queue: str) -> Version | None:
    """The version that new plans of a task queue go to; None: to workers without one. Raises RPCError."""
    request = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue))
    info: TaskQueueVersioningInfo = (await client.workflow_service.describe_task_queue(request)).versioning_info
    found = info.current_deployment_version
    return Version(found.deployment_name, found.build_id) if found.build_id else None


def _known(info: WorkerDeploymentInfo) -> tuple[Known, ...]:
    found = [
        Known(
            version=_read(info.name, each.deployment_version),
            created=each.create_time.ToDatetime(UTC),
            last_current=_time(each.last_current_time),
            first_active=_time(each.first_activation_time),
        )
        for each in info.version_summaries
    ]
    return tuple(sorted(found, key=lambda each: each.created))


def _read(name: str, found: OnServer) -> Version:
    return Version(name, found.build_id or UNVERSIONED)


def _time(found: Timestamp) -> datetime | None:
    return found.ToDatetime(UTC) if found.seconds else None

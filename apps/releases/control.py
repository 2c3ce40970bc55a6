"""Which version gets new plans: ramp up, take back, and drain the versions before.

Plans that run stay with their version. They move to a newer one when they continue as new, or when they are moved.
A plan never moves to an older version: that code cannot read what newer code has recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentVersion as OnServer
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
    UpdateWorkerDeploymentVersionMetadataRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.apps.releases.all_queues import with_all_queues
from plansurvive.apps.releases.at_versions import AtVersion, at_version, running_at
from plansurvive.runtime.versions.routing import BadVersion, Known, Routing, asked, described, routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version

WHOLE = 100.0
MADE_CURRENT = "plans-made-current"
"""Entry in the metadata of a version: when it was made current."""
EVERY = 1.0
"""Seconds between two looks at a version that drains."""


async def ramp(client: Client, version: Version, percent: float) -> Routing:
    """Give a version this share of the new plans, in percent; 100 make it current. Raises BadVersion, NoVersions.

    Waits for its workers while they do not yet listen to all task queues of the version before.
    """
    where = await routing(client, version.name)
    if version.build != UNVERSIONED:
        where.of(version)
    if percent >= WHOLE:
        await _set_current(client, where, version)
    else:
        await _set_ramping(client, where, version, percent)
    return await routing(client, version.name)


async def rollback(client: Client, queue: str, name: str, to: Version | None = None) -> tuple[Version, Routing]:
    """Take back the last release: end the ramp if there is one, else make the version before the current one.

    Returns what no longer gets new plans, and where they go. `to`: the version to go back to. Raises BadVersion.
    """
    where = await routing(client, name)
    if where.ramping is not None and to is None:
        await _set_ramping(client, where, where.ramping, 0.0)
        return where.ramping, await routing(client, name)
    target = to or await _before(client, where)
    if target == where.current:
        raise BadVersion(f"New plans go to {target.text} already.")
    if target.build != UNVERSIONED and not (await at_version(client, queue, where.of(target), where)).workers:
        raise BadVersion(f"No worker runs {target.text}, so new plans would wait: start one of it, then roll back.")
    if where.ramping is not None:
        await _set_ramping(client, where, where.ramping, 0.0)
        where = await routing(client, name)
    await _set_current(client, where, target)
    return where.current, await routing(client, name)


@dataclass
class Drain:
    """Empties a version: waits until nothing runs at it, or moves what does to the current version."""

    client: Client
    queue: str
    version: Version
    say: Callable[[AtVersion], None]
    """Told of each change while it waits."""
    refused: list[str] = field(default_factory=list)
    """What could not be moved, with the server's reason."""

    async def move(self) -> int:
        """Move all that runs at it to the current version; returns how much. Raises BadVersion."""
        where = await self._checked()
        if where.current.build == UNVERSIONED:
            raise BadVersion("New plans go to workers without a version: there is no version to move plans to.")
        if not where.is_newer(where.current, self.version):
            raise BadVersion(
                f"The current version {where.current.text} is older than {self.version.text}: it could not read what "
                "newer code has recorded. Release a newer version, and move the plans there."
            )
        moved = 0
        async for found in running_at(self.client, self.version):
            try:
                await self._move(found.id, found.run_id, where.current)
                moved += 1
            except (RPCError, BadVersion) as error:
                if not isinstance(error, RPCError) or error.status is not RPCStatusCode.NOT_FOUND:  # it has ended
                    self.refused.append(f"{found.id}: {error}")
        return moved

    async def wait(self) -> AtVersion:
        """Wait until nothing is at it. Cancel it to give up. Raises BadVersion."""
        where, last = await self._checked(), None
        while True:
            found = await at_version(self.client, self.queue, where.of(self.version), where)
            if not found.plans + found.others:
                return found
            if (found.plans, found.others, found.is_stuck) != last:
                last = found.plans, found.others, found.is_stuck
                self.say(found)
            await asyncio.sleep(EVERY)

    async def _checked(self) -> Routing:
        where = await routing(self.client, self.version.name)
        where.of(self.version)
        if self.version in (where.current, where.ramping):
            raise BadVersion(f"{self.version.text} gets new plans: ramp another version, or roll back, then drain it.")
        return where

    async def _move(self, workflow_id: str, run_id: str, to: Version) -> None:
        request = UpdateWorkflowExecutionOptionsRequest(
            namespace=self.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
            workflow_execution_options=WorkflowExecutionOptions(versioning_override=_pinned(to)),
            update_mask=FieldMask(paths=["versioning_override"]),
        )
        await self.client.workflow_service.update_workflow_execution_options(request)


def _pinned(to: Version) -> VersioningOverride:
    """Pinned to a version, in the words of older servers too."""
    on_server = OnServer(deployment_name=to.name, build_id=to.build)
    return VersioningOverride(
        behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED,
        pinned_version=to.on_server.to_canonical_string(),
        pinned=VersioningOverride.PinnedOverride(
            version=on_server, behavior=VersioningOverride.PINNED_OVERRIDE_BEHAVIOR_PINNED
        ),
    )


def to_drain(where: Routing) -> list[Version]:
    """The versions that get no new plans, the oldest first."""
    return [each.version for each in where.known if each.version not in (where.current, where.ramping)]


async def _before(client: Client, where: Routing) -> Version:
    """The version that was current last. Without one, new plans go back to workers without a version."""
    found = [(await _was_current(client, each), each.version) for each in where.known if each.version != where.current]
    earlier = [(when, version) for when, version in found if when]
    return max(earlier, key=lambda each: each[0])[1] if earlier else Version(where.name, UNVERSIONED)


async def _was_current(client: Client, known: Known) -> str:
    """When a version was made current last, as text in order of time; empty: never. Older servers keep no such time."""
    on_server = OnServer(deployment_name=known.version.name, build_id=known.version.build)
    request = DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=on_server)
    info = (
        await described(lambda: client.workflow_service.describe_worker_deployment_version(request, retry=True))
    ).worker_deployment_version_info
    noted = info.metadata.entries.get(MADE_CURRENT)
    return (
        noted.data.decode(errors="replace") if noted else known.last_current.isoformat() if known.last_current else ""
    )


async def _set_current(client: Client, where: Routing, version: Version) -> None:
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=version.name,
        build_id="" if version.build == UNVERSIONED else version.build,
        version="__unversioned__" if version.build == UNVERSIONED else f"{version.name}.{version.build}",
        conflict_token=where.token,
        identity=client.identity,
    )
    set_current = client.workflow_service.set_worker_deployment_current_version
    await with_all_queues(client, where.current, version, lambda: set_current(request, retry=True))
    if version.build != UNVERSIONED:
        await _note(client, version)


async def _note(client: Client, version: Version) -> None:
    """Note on the version when it was made current, for `rollback`."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    request = UpdateWorkerDeploymentVersionMetadataRequest(
        namespace=client.namespace,
        deployment_version=OnServer(deployment_name=version.name, build_id=version.build),
        upsert_entries={MADE_CURRENT: Payload(metadata={"encoding": b"json/plain"}, data=f'"{now}"'.encode())},
    )
    await asked(client.workflow_service.update_worker_deployment_version_metadata(request, retry=True))


async def _set_ramping(client: Client, where: Routing, version: Version, percent: float) -> None:
    is_ended = percent <= 0
    request = SetWorkerDeploymentRampingVersionRequest(
        namespace=client.namespace,
        deployment_name=version.name,
        build_id="" if is_ended or version.build == UNVERSIONED else version.build,
        percentage=0.0 if is_ended else percent,
        conflict_token=where.token,
        identity=client.identity,
    )
    if not is_ended:
        build = f"{version.name}.{version.build}"
        request.version = "__unversioned__" if version.build == UNVERSIONED else build
    set_ramping = client.workflow_service.set_worker_deployment_ramping_version
    await with_all_queues(client, where.current, version, lambda: set_ramping(request, retry=True))

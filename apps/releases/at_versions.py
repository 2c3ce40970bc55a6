"""How many plans are at each version, which workers run it, and whether anything waits for it to end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client, WorkflowExecution

from plansurvive.runtime.task_queues import listeners
from plansurvive.runtime.versions.routing import Known, Routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version

_PLANS = "WorkflowType = 'PlanWorkflow'"
_OTHERS = "WorkflowType != 'PlanWorkflow'"


@dataclass(frozen=True)
class AtVersion:
    """One version, as it stands."""

    version: Version
    plans: int
    """Plans that run at it, child plans included."""
    others: int
    """Agents, notifiers and file changes at it."""
    workers: tuple[str, ...]
    """Identities of its workers that poll the queue."""
    state: str
    """current, ramping, draining (plans are at it), drained, or new: it never got a plan."""
    percent: float = 0.0
    """Of the new plans, those it gets."""

    @property
    def is_stuck(self) -> bool:
        """Whether something is at it, and no worker runs it."""
        return bool(self.plans + self.others) and not self.workers


async def at_version(client: Client, queue: str, known: Known, where: Routing, *, of_queue: bool = False) -> AtVersion:
    """One version of a deployment. `of_queue`: what is at it counts on this queue only. Raises RPCError."""
    version = known.version
    everything = f"{_at(version)} AND ExecutionStatus = 'Running'"
    everything += f" AND TaskQueue = {_quoted(queue)}" if of_queue else ""
    plans = (await client.count_workflows(f"{everything} AND {_PLANS}")).count
    # A plan may end or move between two counts: a difference of counts could be negative, and hide it in a sum.
    others = (await client.count_workflows(f"{everything} AND {_OTHERS}")).count
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    workers = tuple(await listeners(client, queue, kind, version=version))
    return AtVersion(version, plans, others, workers, *_state(known, where, plans + others))


async def all_versions(client: Client, queue: str, where: Routing, *, of_queue: bool = False) -> list[AtVersion]:
    """Every version of a deployment that the server knows, the newest first. Raises RPCError."""
    return [await at_version(client, queue, known, where, of_queue=of_queue) for known in reversed(where.known)]


async def running_at(client: Client, version: Version) -> AsyncIterator[WorkflowExecution]:
    """What runs at a version."""
    async for found in client.list_workflows(f"{_at(version)} AND ExecutionStatus = 'Running'"):
        yield found


def _state(known: Known, where: Routing, left: int) -> tuple[str, float]:
    rest = 100.0 - (where.percent if where.ramping else 0.0)
    if known.version == where.current:
        return "current", rest
    if known.version == where.ramping:
        return "ramping", where.percent
    if left:
        return "draining", 0.0
    return ("drained" if known.first_active else "new"), 0.0


def _quoted(queue: str) -> str:
    """The name of a queue in the words of the server's search; a setting, which may hold quotes."""
    return json.dumps(queue)


def _at(version: Version) -> str:
    """In the words of the server's search; names have been checked, and hold no quotes."""
    if version.build == UNVERSIONED:
        return "TemporalWorkerDeploymentVersion IS NULL"
    return f"TemporalWorkerDeploymentVersion = '{version.indexed}'"

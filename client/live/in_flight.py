"""The activities of a plan in flight, of its agents and child plans as well: one request per workflow.

Temporal lists an activity from its schedule to its end, with the heartbeat details of its last attempt and, between
attempts, the time of the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.client.ids import AGENT, PREFIX
from plansurvive.client.rpc import RPC_TIMEOUT, describe, heartbeat_of, memo_of, pending_call
from plansurvive.plans.views.models.live import LiveView, live_of

MAX_BELOW = 10
"""Agents and child plans that are asked as well, the nearest first."""
MAX_LISTED = 200
"""Activities of one workflow that are read."""
LLM = "ask_llm"
UNKNOWN_TO_WORKER = "NotFoundError"
"""How the attempt of a worker fails that does not have the tool: the SDK's name for it. It has sent no heartbeat."""
Child = tuple[str, tuple[str, ...]]
"""An agent or a child plan by its workflow, and the steps of the plans above the one that runs it, outermost first."""
_OF_NO_STEP = frozenset((
    "check_plan", "record_end", "compare_files", "snapshot_workspace", "write_summary", "track_agent", "file_changes",
))  # fmt: skip
"""Activities of a plan that are neither a tool call nor an LLM request."""


class InFlight(NamedTuple):
    """One activity in flight."""

    key: str
    """Workflow and activity id: the same for all attempts."""
    step_id: str
    """The step of the plan that it belongs to, whoever called it; empty for an LLM request of the plan itself."""
    tool: str
    live: LiveView
    agent: str = ""
    """The agent that called it; empty: a plan."""
    below: str = ""
    """Its step in the child plan that the step runs, by its path: `deploy/upload`; empty: none of a child plan."""

    @property
    def what(self) -> str:
        """What runs, if it is not the step's own tool: a child plan's step, an LLM request, an agent's call."""
        call = "LLM request" if self.tool == LLM else self.tool if self.agent else ""
        return ": ".join(filter(None, (self.below, call)))


async def in_flight(client: Client, plan: str) -> list[InFlight]:
    """The activities in flight; empty for a plan that has ended. Raises PlanNotFound, NotConnected."""
    found = await describe(client, plan)
    if found.status is not WorkflowExecutionStatus.RUNNING:
        return []
    seen, level, asked = await _activities(found), _children(found, ()), 0
    while level := level[: MAX_BELOW - asked]:
        asked += len(level)
        answers = await asyncio.gather(*(_of_child(client, *each) for each in level))
        seen += [each for calls, _ in answers for each in calls]
        level = [each for _, children in answers for each in children]
    return seen


async def _of_child(client: Client, name: str, above: tuple[str, ...]) -> tuple[list[InFlight], list[Child]]:
    """The activities of an agent or a child plan, as those of the step that it works on, and the children of both kinds
    that it has itself. Both are empty if it has just ended."""
    with suppress(RPCError):
        found = await client.get_workflow_handle(name).describe(rpc_timeout=RPC_TIMEOUT)
        step_id = (await memo_of(found)).get("stepId")
        if isinstance(step_id, str) and step_id:
            path = (*above, step_id)
            is_agent = name.startswith(AGENT)
            calls = [_placed(each, path, name if is_agent else "") for each in await _activities(found)]
            return calls, [] if is_agent else _children(found, path)
    return [], []


def _children(found: WorkflowExecutionDescription, path: tuple[str, ...]) -> list[Child]:
    ids = [child.workflow_id for child in found.raw_description.pending_children]
    return [(each, path) for each in ids if each.startswith((AGENT, PREFIX))]


def _placed(each: InFlight, path: tuple[str, ...], agent: str) -> InFlight:
    """The call as one of the plan that is looked at."""
    below = path[1:] if agent or not each.step_id else (*path[1:], each.step_id)
    return each._replace(step_id=path[0], agent=agent, below="/".join(below))


async def _activities(found: WorkflowExecutionDescription) -> list[InFlight]:
    listed = found.raw_description.pending_activities[:MAX_LISTED]
    return [await _activity(found, each) for each in listed if each.activity_type.name not in _OF_NO_STEP]


async def _activity(found: WorkflowExecutionDescription, info: PendingActivityInfo) -> InFlight:
    details = await heartbeat_of(found, info)
    waits = info.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and info.attempt > 1
    next_at = (_time(info.next_attempt_schedule_time) or _time(info.scheduled_time)) if waits else None
    tool = info.activity_type.name
    step_id = "" if tool == LLM else pending_call(info, details)[0]
    live = live_of(details, next_at)
    if waits and live.is_plain and info.last_failure.application_failure_info.type == UNKNOWN_TO_WORKER:
        live = live.model_copy(update={"line": "a worker without this tool took it; it is tried again"})
    return InFlight(f"{found.id}/{info.activity_id}", step_id, tool, live)


def _time(stamp: Timestamp) -> datetime | None:
    return stamp.ToDatetime(UTC) if stamp.seconds > 0 else None

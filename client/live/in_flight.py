"""The activities of a plan in flight, of its agents as well, with the state of each: one request per workflow.

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

from plansurvive.client.ids import AGENT
from plansurvive.client.rpc import RPC_TIMEOUT, describe, heartbeat_of, memo_of
from plansurvive.plans.flow.ids import of_call
from plansurvive.plans.views.live import LiveView, live_of

MAX_AGENTS = 10
"""Agents of a plan that are asked as well; those of further ones are not."""
MAX_LISTED = 200
"""Activities of one workflow that are read."""
LLM = "ask_llm"
_OF_NO_STEP = frozenset((
    "check_plan", "record_end", "compare_files", "snapshot_workspace", "write_summary", "track_agent", "file_changes",
))  # fmt: skip
"""Activities of a plan that are neither a tool call nor an LLM request."""


class InFlight(NamedTuple):
    """One activity in flight."""

    key: str
    """Workflow and activity id: the same for all attempts."""
    step_id: str
    """The step of the plan that it belongs to, also if an agent called it; empty for an LLM request."""
    tool: str
    live: LiveView
    agent: str = ""
    """The agent that called it; empty: the plan itself."""

    @property
    def what(self) -> str:
        """What runs, if it is not the step's own tool: an LLM request, or a call of its agent."""
        return "LLM request" if self.tool == LLM else self.tool if self.agent else ""


async def in_flight(client: Client, plan: str) -> list[InFlight]:
    """The activities in flight; empty for a plan that has ended. Raises PlanNotFound, NotConnected."""
    found = await describe(client, plan)
    if found.status is not WorkflowExecutionStatus.RUNNING:
        return []
    children = [child.workflow_id for child in found.raw_description.pending_children]
    agents = [name for name in children if name.startswith(AGENT)][:MAX_AGENTS]
    of_agents = await asyncio.gather(*(_of_agent(client, name) for name in agents))
    return [*await _activities(found), *(each for some in of_agents for each in some)]


async def _of_agent(client: Client, agent: str) -> list[InFlight]:
    """The activities of an agent, as those of the step that it works on; empty if it has just ended."""
    with suppress(RPCError):
        found = await client.get_workflow_handle(agent).describe(rpc_timeout=RPC_TIMEOUT)
        step_id = (await memo_of(found)).get("stepId")
        if isinstance(step_id, str) and step_id:
            return [each._replace(step_id=step_id, agent=agent) for each in await _activities(found)]
    return []


async def _activities(found: WorkflowExecutionDescription) -> list[InFlight]:
    listed = found.raw_description.pending_activities[:MAX_LISTED]
    return [await _activity(found, each) for each in listed if each.activity_type.name not in _OF_NO_STEP]


async def _activity(found: WorkflowExecutionDescription, info: PendingActivityInfo) -> InFlight:
    details = await heartbeat_of(found, info)
    waits = info.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and info.attempt > 1
    next_at = (_time(info.next_attempt_schedule_time) or _time(info.scheduled_time)) if waits else None
    tool = info.activity_type.name
    step_id = "" if tool == LLM else of_call(info.activity_id)[0]
    return InFlight(f"{found.id}/{info.activity_id}", step_id, tool, live_of(details, next_at))


def _time(stamp: Timestamp) -> datetime | None:
    return stamp.ToDatetime(UTC) if stamp.seconds > 0 else None

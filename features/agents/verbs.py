"""Starts agents that belong to no plan, or resume one, and lists the runs of agents and plans that the server knows.

For everything else an agent is handled like a plan (`client.runs`), by its id `agent-...`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client import ids
from plansurvive.client.ids import AGENT, plan_id
from plansurvive.client.priority import priority_of
from plansurvive.client.rpc import RPC_TIMEOUT, memo_of, translated
from plansurvive.client.verbs.start import SUMMARY_BYTES, Started, cut, launch
from plansurvive.features.agents.model.history import DEFAULT_TYPE, PLAN_TYPE, Entry, History, Status, linked, written
from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.plans.execution.resume import base_id
from plansurvive.plans.run import Options, PlanStatus
from plansurvive.plans.text.safe_text import line
from plansurvive.workflows.search_attributes import first

RUNS = (
    "WorkflowType IN ('AgentWorkflow', 'CodingAgentWorkflow', 'PlanWorkflow') AND ExecutionStatus != 'ContinuedAsNew'"
)
MAX_RUNS = 1_000
_ENDS: dict[str, Status] = {"completed": "completed", "timeout": "timeout", "cancelled": "interrupted"}
_BY_TEMPORAL: dict[WorkflowExecutionStatus, Status] = {
    WorkflowExecutionStatus.RUNNING: "spawned",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "interrupted",
    WorkflowExecutionStatus.TERMINATED: "interrupted",
    WorkflowExecutionStatus.TIMED_OUT: "timeout",
}


async def start_agent(
    client: Client,
    order: AgentOrder,
    *,
    options: Options | None = None,
    agent_id: str | None = None,
    queue: str = "plans",
) -> Started:
    """Start an agent that belongs to no plan; returns without waiting for it.

    `order` holds the request, the tools, the limits and the schema of the final answer. `agent_id` may omit the prefix
    `agent-`; without one, an id is generated from the request. Raises PlanExists, BadPlanId, NotConnected.
    """
    title = " ".join(order.request.split())
    given = (options or Options()).model_dump(mode="json", exclude_none=True)
    request = {"order": order.model_dump(mode="json", exclude_defaults=True), "options": given}

    async def begin(chosen: str) -> Started:
        name = AGENT + chosen
        ids.workflow_id(name)
        return await launched(client, request, name, queue, title, "", options)

    return await (ids.with_generated(title, begin) if agent_id is None else begin(agent_id.removeprefix(AGENT)))


async def launched(
    client: Client,
    request: dict[str, Any],
    agent_id: str,
    queue: str,
    title: str,
    resumes: str,
    options: Options | None = None,
) -> Started:
    """Start an agent; `resumes` is the id of the agent it resumes, or empty. Raises PlanExists, NotConnected."""
    memo = {"title": title[:1_000], "request": title[:1_000], **({"resumes": resumes} if resumes else {})}
    shown = {"memo": memo, "static_summary": cut(line(title), SUMMARY_BYTES)}
    index = first(PlanStatus.RUNNING.value, title, resumes)
    return await launch(
        client, request, agent_id, queue, shown, index, priority_of(None, options), kind="AgentWorkflow"
    )


async def recorded(client: Client) -> list[Entry]:
    """The runs of agents and plans on the server, at most 1,000; the history file can be rebuilt from them.

    An open run has the status `spawned`, even if its worker has died; a cancelled or terminated one is `interrupted`.
    The run of a plan is an entry of the type `plan`, besides the entries of its agents. Raises NotConnected.
    """
    return linked(History(max_entries=MAX_RUNS, entries=[entry async for entry in _entries(client)])).entries


async def ends(client: Client, entries: Sequence[Entry]) -> list[tuple[str, Status, datetime]]:
    """How runs have ended that the history file still has in progress: (id, status, time). One request for each.

    A run may be terminated, or die with the machine, without anybody who could record it. Runs that this server does
    not know are left out. Raises NotConnected.
    """
    found: list[tuple[str, Status, datetime]] = []
    for entry in entries:
        try:
            known = await client.get_workflow_handle(entry.agent_id).describe(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                continue
            raise translated(error, "") from error
        if known.close_time is not None:
            found.append((entry.agent_id, await _status(client, known), known.close_time))
    return found


async def _entries(client: Client) -> AsyncIterator[Entry]:
    try:
        async for execution in client.list_workflows(RUNS, limit=MAX_RUNS):
            yield await _entry(client, execution)
    except RPCError as error:
        raise translated(error, "") from error


async def _entry(client: Client, execution: WorkflowExecution) -> Entry:
    memo = await memo_of(execution)
    is_agent = execution.id.startswith(AGENT)
    plan = base_id(ids.recorded_id(memo.get("planId")) or "") if is_agent else base_id(plan_id(execution.id))
    what = str(memo.get("request") or memo.get("title") or execution.id)
    resumes = ids.recorded_id(memo.get("resumes"))
    return Entry(
        agent_id=execution.id,
        agent_type=DEFAULT_TYPE if is_agent else PLAN_TYPE,
        task_description=f"Execute plan {plan}: {what}" if plan else what,
        plan=plan or None,
        timestamp=written(execution.start_time),
        status=await _status(client, execution),
        completion_timestamp=written(execution.close_time) if execution.close_time else None,
        resumes=_workflow(resumes) if resumes else None,
    )


async def _status(client: Client, execution: WorkflowExecution) -> Status:
    if execution.status is not WorkflowExecutionStatus.COMPLETED:
        return _BY_TEMPORAL.get(execution.status or WorkflowExecutionStatus.RUNNING, "failed")
    try:
        result: Any = await client.get_workflow_handle(execution.id, run_id=execution.run_id).result()
    except (WorkflowFailureError, RPCError):
        return "failed"
    except Exception:  # a result that is not ours: whatever a parser raises for the bytes of a payload
        return "completed"
    if not isinstance(result, dict):
        return "completed"
    agent = result.get("agent")
    end = agent.get("end") if isinstance(agent, dict) else None
    return _ENDS.get("timeout" if end == "timeout" else str(result.get("status")), "failed")


def _workflow(name: str) -> str:
    return ids.workflow_id(name)

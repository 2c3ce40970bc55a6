"""Reports an agent's run: to the agent history, to the parent plan, and to SUMMARY.md.

A failing report becomes a warning in the agent's log; it never fails the run.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from plans.activity_io import PastCall, SummaryFile
from plans.agents.history import DEFAULT_TYPE, AgentEvent, Entry, written
from plans.agents.history_file import run_summary
from plans.agents.run import AgentRun, asked_args, outcome_of, ran_args, tasks_text
from plans.execution.resume import base_id
from plans.execution.tool_history import MAX_PAST, cut, short
from plans.log import LogKind
from plans.model import Step
from plans.run import Status
from plans.views.agent_progress import progress_of
from plans.views.safe_text import safe
from workflows import policies

Kind = Literal["spawned", "completed", "failed", "timeout", "interrupted", "resumed"]
_KINDS: dict[str, Kind] = {
    "completed": "completed", "timeout": "timeout", "interrupted": "interrupted", "cancelled": "interrupted",
}  # fmt: skip


async def begun(agent: AgentRun) -> None:
    """Record in the agent history that the run was spawned or resumed."""
    resumes = agent.run.resumes
    await _track(agent, "resumed" if resumes else "spawned", resumes)


async def ended(agent: AgentRun) -> None:
    """Record the end of the run in the agent history and write SUMMARY.md."""
    await _track(agent, _KINDS.get(agent.end or "", "failed"))
    run = agent.run
    if not run.facts.keeps_summaries:
        return
    entry = Entry(
        agent_id=run.plan.id or "",
        agent_type=DEFAULT_TYPE,
        task_description=_what(agent),
        plan=base_id(agent.order.plan_id) or None,
        timestamp=written(run.started or workflow.now()),
        status="completed",
        completion_timestamp=written(run.ended or workflow.now()),
        resumes=run.resumes or None,
    )
    body = f"## Result\n\n{safe(tasks_text(agent))}"
    file = SummaryFile(
        plan_id=run.plan.id or "", markdown=run_summary(entry, _KINDS.get(agent.end or "", "failed"), body)
    )
    await _do(agent, "write_summary", file, "write SUMMARY.md")


async def report_to_parent(agent: AgentRun, text: str, is_new: bool) -> None:
    """Signal `agent_progress` to the parent plan, if there is one. `is_new`: the parent has no task list yet."""
    parent = workflow.info().parent
    if parent is None or not agent.order.step_id:
        return
    message = {"stepId": agent.order.step_id, "line": text[:500], **progress_of(agent.tasks, is_new)}
    with suppress(ApplicationError):  # the plan has already ended
        await workflow.get_external_workflow_handle(parent.workflow_id).signal("agent_progress", message)


def wrote(agent: AgentRun) -> dict[str, Any]:
    """Files created or changed by the agent's calls, by path with their stamps; None where a file has no stamp."""
    names = [name for state in agent.run.steps.values() for name in state.wrote]
    stamps = agent.run.files.stamps
    return {name: stamps[name].model_dump(mode="json") if name in stamps else None for name in dict.fromkeys(names)}


def shared(agent: AgentRun) -> dict[str, Any]:
    """Of `wrote`, what others may have changed instead, and who; empty if there is nothing of the kind."""
    states = agent.run.steps.values()
    paths = dict.fromkeys(path for state in states for path in state.shared)
    others = dict.fromkeys(name for state in states for name in state.shared_with)
    return {"shared": list(paths), "sharedWith": list(others)} if paths else {}


def calls(agent: AgentRun) -> list[dict[str, Any]]:
    """The agent's last MAX_PAST tool calls and attempts, truncated, as PastCalls for the parent's step."""
    done = [step for step in agent.run.plan.steps if agent.run.steps[step.id].calls][-MAX_PAST:]
    return [call for step in done for call in (*_retried(agent, step), _call(agent, step))][-MAX_PAST:]


def _retried(agent: AgentRun, step: Step) -> list[dict[str, Any]]:
    """The attempts of a call before its last one."""
    past = (call.model_copy(update={"call": 0}) for call in agent.run.steps[step.id].past if call.retried)
    return [call.model_dump(mode="json", exclude_defaults=True) for call in past]


def _call(agent: AgentRun, step: Step) -> dict[str, Any]:
    state = agent.run.steps[step.id]
    began = next((change.time for change in state.changes if change.status is Status.RUNNING), workflow.now())
    asked, decision = asked_args(agent, step.id), agent.run.decisions.get(step.id)
    result = cut(
        outcome_of(agent, step.id).text or (state.result.large.preview if state.result and state.result.large else "")
    )
    record = PastCall(
        tool=step.tool, args=short(ran_args(agent, step.id)), result=result, time=began,
        asked=None if asked is None else short(asked), by=decision.by if decision and asked is not None else "",
    )  # fmt: skip
    return record.model_dump(mode="json", exclude_defaults=True)


async def _track(agent: AgentRun, kind: Kind, resumes: str = "") -> None:
    event = AgentEvent(
        kind=kind,
        agent_id=agent.run.plan.id or "",
        time=workflow.now(),
        agent_type=DEFAULT_TYPE,
        plan=base_id(agent.order.plan_id) or None,
        task_group=_what(agent),
        resumes=resumes,
    )
    warning = await _do(agent, "track_agent", event, f"agent history: {kind}")
    if warning:
        agent.run.note(LogKind.WARNING, str(warning), workflow.now())


async def _do(agent: AgentRun, name: str, argument: Any, summary: str) -> Any:
    try:
        return await workflow.execute_activity(
            name,
            argument,
            summary=summary,
            start_to_close_timeout=policies.SUMMARY.start_to_close,
            retry_policy=policies.SUMMARY.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        agent.run.note(LogKind.WARNING, f"activity {name} failed: {error.cause}", workflow.now())
        return None


def _what(agent: AgentRun) -> str:
    return " ".join(agent.order.request.split())[:200]

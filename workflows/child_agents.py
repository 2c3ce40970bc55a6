"""Runs agent steps as child workflows (AgentWorkflow). An agent's tool calls, files and tokens count as the step's.

An agent starts with the plan's file stamps, and its approvals are requested and given under its own workflow id.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

from plans.activity_io import PastCall
from plans.agents.order import AgentOrder, agent_of_step, asks_the_same, order_of_step
from plans.agents.resume import for_step
from plans.agents.run import AgentRun
from plans.budget import Usage
from plans.execution.file_tracking import stamps_for
from plans.execution.tool_history import MAX_PAST
from plans.log import LogKind
from plans.model import Step
from plans.run import Options, PlanStatus, Run
from workflows import search_attributes


class ChildAgents:
    """The agents of one Run's steps."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._children: dict[str, workflow.ChildWorkflowHandle[Any, Any]] = {}
        self._sending: set[asyncio.Task[None]] = set()  # asyncio holds tasks weakly
        self._interrupted = False

    def start(self, step: Step, args: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        """Start an agent for the step. The task returns what a tool's activity would; raises ApplicationError."""
        self._run.steps[step.id].calls += 1
        return asyncio.create_task(self._work(step, args))

    def interrupt(self, step_id: str) -> None:
        """Signal the agent to stop at its next safe point; its step ends then."""
        self._interrupted = True
        if step_id in self._children:
            self._send_interrupt(self._children[step_id])

    def _send_interrupt(self, child: workflow.ChildWorkflowHandle[Any, Any]) -> None:
        task = asyncio.create_task(_interrupt(child))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _work(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        began = workflow.now()
        agent = self._agent(step, args)
        name = agent.run.plan.id or ""
        earlier = f", resuming '{agent.run.resumes}'" if agent.run.resumes else ""
        self._run.note(LogKind.AGENT, f"agent '{name}' started{earlier}", began, step.id, subject=name)
        try:
            child = await workflow.start_child_workflow(
                "AgentWorkflow",
                {"agent": agent.model_dump(mode="json", exclude_defaults=True)},
                id=name,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                memo=_memo(agent),
                search_attributes=self._index(agent),
                static_summary=f"{step.id} · {agent.run.plan.title}"[:150],
            )
            self._children[step.id] = child
            if self._interrupted:  # while it was starting: there was no handle to signal yet
                self._send_interrupt(child)
            result = await child
        except (ChildWorkflowError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error) or not isinstance(error, ChildWorkflowError):
                await _cancel(name)
                raise asyncio.CancelledError from error
            raise self._failure(step, name, error.cause) from error
        finally:
            self._children.pop(step.id, None)
        return self._returned(step, result, (workflow.now() - began).total_seconds() * 1_000)

    def _index(self, agent: AgentRun) -> TypedSearchAttributes | None:
        """The agent's search attributes; None when they are not registered on the server."""
        run, resumes = agent.run, agent.run.resumes if search_attributes.takes_resumes() else ""
        known = self._run.facts.search_attributes
        return search_attributes.first(PlanStatus.RUNNING.value, run.plan.title, resumes) if known else None

    def _returned(self, step: Step, result: dict[str, Any], duration: float) -> dict[str, Any]:
        end = result["agent"]["end"]
        self._record(step, result)
        if end != "completed":
            code = f"AGENT_{str(end).upper()}"
            text = f"agent '{result['planId']}' stopped: {result['stopped']}"
            raise ApplicationError(text, _files(result), type=code)
        return {"value": result["value"], "duration": duration, **_files(result)}

    def _failure(self, step: Step, name: str, cause: BaseException | None) -> ApplicationError:
        left: dict[str, Any] = {"wrote": {}}
        if isinstance(cause, ApplicationError) and cause.details and isinstance(cause.details[0], dict):
            self._record(step, cause.details[0])
            left |= _files(cause.details[0])
        text = f"agent '{name}': {getattr(cause, 'message', cause)}"
        return ApplicationError(text[:4_000], left, type=getattr(cause, "type", None) or "AGENT_FAILED")

    def _agent(self, step: Step, args: dict[str, Any]) -> AgentRun:
        run = self._run
        order = order_of_step(args, run.plan.id or "", step.id)
        name = agent_of_step(run.plan.id or "", step.id, run.steps[step.id].calls)
        options = Options(
            workspace=run.workspace_of(step), approve_all=run.options.approve_all, by=run.options.by,
            history_limit=run.options.history_limit,
        )  # fmt: skip
        agent = self._earlier(step, order, name) or AgentRun.of(order, name, options)
        agent.run.options, agent.run.unsigned = options, run.unsigned
        agent.run.plan = agent.run.plan.model_copy(update={"queue": run.queue_of(step)})
        # What a file was like is known to all; what its agents.md says, only to the conversation that was shown it.
        agent.run.files.stamps = stamps_for(run, step) | agent.run.files.stamps
        return agent

    def _earlier(self, step: Step, order: AgentOrder, name: str) -> AgentRun | None:
        """The agent that worked on the step before the plan was resumed, if its order was the same."""
        stored = self._run.agents.pop(step.id, None)
        try:
            agent = AgentRun.model_validate(stored) if stored is not None else None
        except ValidationError:
            return None  # written by another version of this program: the step starts over
        return for_step(agent, order, name, workflow.now()) if agent and asks_the_same(agent.order, order) else None

    def _record(self, step: Step, result: dict[str, Any]) -> None:
        """Add the agent's tool calls, finished tasks and tokens to the step."""
        run, state = self._run, self._run.steps[step.id]
        state.past += [PastCall.model_validate(call) for call in result.get("calls", [])]
        del state.past[:-MAX_PAST]
        state.tasks_done = min(len(state.tasks), sum(task["status"] == "done" for task in result["agent"]["tasks"]))
        usage = result["agent"]["usage"]
        spent = Usage(calls=usage["iterations"], total_tokens=usage["tokens"])
        run.ledger = run.ledger.plus(spent, model="agent", step_id=step.id)


def _memo(agent: AgentRun) -> dict[str, Any]:
    """The agent's memo: its title for lists, and the ids of its plan, its step and the agent it resumes."""
    title, order = agent.run.plan.title, agent.order
    links = {"planId": order.plan_id, "stepId": order.step_id}
    return {"title": title, "request": title, **links, **({"resumes": agent.run.resumes} if agent.run.resumes else {})}


async def _cancel(agent_id: str) -> None:
    """Cancel by id, because cancelling the child handle does not reach the agent's later runs (continue-as-new)."""
    with suppress(ApplicationError):  # it has already ended
        await workflow.get_external_workflow_handle(agent_id).cancel()


async def _interrupt(child: workflow.ChildWorkflowHandle[Any, Any]) -> None:
    with suppress(ApplicationError):  # it has already ended
        await child.signal("interrupt", {"by": "its plan"})


def _files(result: dict[str, Any]) -> dict[str, Any]:
    """The files that an agent reports, as fields of a Return."""
    return {name: result[name] for name in ("wrote", "shared", "sharedWith") if name in result}

"""Steps done by an agent: each is a child workflow. Its tasks show in the log, its tool calls and files are the step's.

The agent knows the files that the plan knows, and asks people for approval itself, under its own id.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

from plans.agents.order import AgentOrder, agent_of_step, asks_the_same, order_of_step
from plans.agents.run import AgentRun, for_step
from plans.budget import Usage
from plans.execution.tool_history import MAX_PAST
from plans.model import Step
from plans.run import Options, PastCall, PlanStatus, Run
from workflows import search_attributes


class ChildAgents:
    """The agents that work for one Run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._children: dict[str, workflow.ChildWorkflowHandle[Any, Any]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._interrupted = False

    def start(self, step: Step, args: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        """Have an agent do the step; the task's result is that of a tool."""
        self._run.steps[step.id].calls += 1
        return asyncio.create_task(self._work(step, args))

    def interrupt(self, step_id: str) -> None:
        """Tell the agent to stop at its next safe point; its step ends then."""
        self._interrupted = True
        if step_id in self._children:
            self._tell(self._children[step_id])

    def _tell(self, child: workflow.ChildWorkflowHandle[Any, Any]) -> None:
        task = asyncio.create_task(_interrupt(child))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _work(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        began = workflow.now()
        agent = self._agent(step, args)
        name = agent.run.plan.id or ""
        earlier = f", going on from '{agent.run.resumes}'" if agent.run.resumes else ""
        self._run.note("agent", f"agent '{name}' works on it{earlier}", began, step.id)
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
            if self._interrupted:
                self._tell(child)
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
        """What lists find it by, where the server knows our search attributes."""
        run, resumes = agent.run, agent.run.resumes if search_attributes.takes_resumes() else ""
        known = self._run.facts.search_attributes
        return search_attributes.first(PlanStatus.RUNNING.value, run.plan.title, resumes) if known else None

    def _returned(self, step: Step, result: dict[str, Any], duration: float) -> dict[str, Any]:
        end = result["agent"]["end"]
        self._record(step, result)
        if end != "completed":
            code = f"AGENT_{str(end).upper()}"
            text = f"agent '{result['planId']}' stopped: {result['stopped']}"
            raise ApplicationError(text, {"wrote": result["wrote"]}, type=code)
        return {"value": result["value"], "duration": duration, "wrote": result["wrote"]}

    def _failure(self, step: Step, name: str, cause: BaseException | None) -> ApplicationError:
        wrote: dict[str, Any] = {}
        if isinstance(cause, ApplicationError) and cause.details and isinstance(cause.details[0], dict):
            self._record(step, cause.details[0])
            wrote = cause.details[0].get("wrote", {})
        text = f"agent '{name}': {getattr(cause, 'message', cause)}"
        return ApplicationError(text[:4_000], {"wrote": wrote}, type=getattr(cause, "type", None) or "AGENT_FAILED")

    def _agent(self, step: Step, args: dict[str, Any]) -> AgentRun:
        run = self._run
        order = order_of_step(args, run.plan.id or "", step.id)
        name = agent_of_step(run.plan.id or "", step.id, run.steps[step.id].calls)
        options = Options(
            workspace=run.workspace_of(step), approve_all=run.options.approve_all, by=run.options.by,
            history_limit=run.options.history_limit,
        )  # fmt: skip
        agent = self._earlier(step, order, name) or AgentRun.of(order, name, options)
        agent.run.options = options
        agent.run.plan = agent.run.plan.model_copy(update={"queue": run.queue_of(step)})
        known = run.files.model_copy(deep=True)
        agent.run.files.stamps = known.stamps | agent.run.files.stamps
        agent.run.files.notes_seen = list(dict.fromkeys(known.notes_seen + agent.run.files.notes_seen))
        return agent

    def _earlier(self, step: Step, order: AgentOrder, name: str) -> AgentRun | None:
        """The agent that did the step before the plan was resumed, when it was asked for the same."""
        kept = self._run.agents.pop(step.id, None)
        try:
            agent = AgentRun.model_validate(kept) if kept is not None else None
        except ValidationError:
            return None  # left by another version
        return for_step(agent, order, name, workflow.now()) if agent and asks_the_same(agent.order, order) else None

    def _record(self, step: Step, result: dict[str, Any]) -> None:
        """The agent's tool calls and tokens are the step's."""
        run, state = self._run, self._run.steps[step.id]
        state.past += [PastCall.model_validate(call) for call in result.get("calls", [])]
        del state.past[:-MAX_PAST]
        state.tasks_done = min(len(state.tasks), sum(task["status"] == "done" for task in result["agent"]["tasks"]))
        usage = result["agent"]["usage"]
        spent = Usage(calls=usage["iterations"], total_tokens=usage["tokens"])
        run.ledger = run.ledger.plus(spent, model="agent", step_id=step.id)


def _memo(agent: AgentRun) -> dict[str, Any]:
    """What lists show, and what links an agent to its plan and to the agent before it."""
    title, order = agent.run.plan.title, agent.order
    links = {"planId": order.plan_id, "stepId": order.step_id}
    return {"title": title, "request": title, **links, **({"resumes": agent.run.resumes} if agent.run.resumes else {})}


async def _cancel(agent_id: str) -> None:
    """By its id: the cancellation of a child does not reach the run in which it has gone on."""
    with suppress(ApplicationError):  # it has ended
        await workflow.get_external_workflow_handle(agent_id).cancel()


async def _interrupt(child: workflow.ChildWorkflowHandle[Any, Any]) -> None:
    with suppress(ApplicationError):  # it has ended
        await child.signal("interrupt", {"by": "its plan"})

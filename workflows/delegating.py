"""Steps done by an agent: each is a child workflow. Its tasks show in the log, its tool calls and files are the step's.

The agent knows the files that the plan knows, and asks people for approval itself, under its own id.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from plans.agent_limits import AgentLimits
    from plans.agent_order import STEP_LIMITS, AgentOrder
    from plans.agent_run import AgentRun
    from plans.budget import Usage
    from plans.model import Step
    from plans.recording import MAX_PAST
    from plans.run import Options, PastCall, Run

TOOL = "agent"


class Delegates:
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
        self._run.note("agent", f"agent '{name}' works on it", began, step.id)
        try:
            child = await workflow.start_child_workflow(
                "AgentWorkflow",
                {"agent": agent.model_dump(mode="json", exclude_defaults=True)},
                id=name,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                memo={
                    "title": agent.run.plan.title,
                    "request": agent.run.plan.title,
                    "planId": self._run.plan.id or "",
                },
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
        given = {field: args[name] for name, field in STEP_LIMITS.items() if args.get(name) is not None}
        order = AgentOrder(
            request=args["objective"],
            tools=args.get("tools"),
            limits=AgentLimits.model_validate(given),
            output_schema=args.get("outputSchema"),
            plan_id=run.plan.id or "",
            step_id=step.id,
        )
        calls = run.steps[step.id].calls
        name = f"agent-{(run.plan.id or '')[:100]}-{step.id[:80]}" + (f"-{calls}" if calls > 1 else "")
        options = Options(
            workspace=run.workspace_of(step), approve_all=run.options.approve_all, by=run.options.by,
            history_limit=run.options.history_limit,
        )  # fmt: skip
        agent = AgentRun.of(order, name, options)
        agent.run.plan = agent.run.plan.model_copy(update={"queue": run.queue_of(step)})
        agent.run.files = run.files.model_copy(deep=True)
        return agent

    def _record(self, step: Step, result: dict[str, Any]) -> None:
        """The agent's tool calls and tokens are the step's."""
        run, state = self._run, self._run.steps[step.id]
        state.past += [PastCall.model_validate(call) for call in result.get("calls", [])]
        del state.past[:-MAX_PAST]
        usage = result["agent"]["usage"]
        spent = Usage(calls=usage["iterations"], total_tokens=usage["tokens"])
        run.ledger = run.ledger.plus(spent, model="agent", step_id=step.id)


async def _cancel(agent_id: str) -> None:
    """By its id: the cancellation of a child does not reach the run in which it has gone on."""
    with suppress(ApplicationError):  # it has ended
        await workflow.get_external_workflow_handle(agent_id).cancel()


async def _interrupt(child: workflow.ChildWorkflowHandle[Any, Any]) -> None:
    with suppress(ApplicationError):  # it has ended
        await child.signal("interrupt", {"by": "its plan"})

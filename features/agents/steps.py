"""Runs agent steps as child workflows (AgentWorkflow). An agent's tool calls, files and tokens count as the step's.

An agent starts with the plan's file stamps, and its approvals are requested and given under its own workflow id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ChildWorkflowError, is_cancelled_exception

from plansurvive.features.agents.model.as_plan import TOOL as AGENT
from plansurvive.features.agents.model.order import AgentOrder, agent_of_step, asks_the_same, order_of_step
from plansurvive.features.agents.model.reports.accounts import opened
from plansurvive.features.agents.model.resume import for_step
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.agents.progress import note_end
from plansurvive.features.children.child_run import directories_for
from plansurvive.features.children.handles import cancel
from plansurvive.features.children.judged import judged
from plansurvive.features.children.place import SharedPlace
from plansurvive.features.children.requests import must_ask
from plansurvive.plans.child_state import AtWork, ParentLink
from plansurvive.plans.execution import accounts
from plansurvive.plans.execution.file_tracking import stamps_for
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Options, PlanStatus, Run
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.usage import OVERRUN_CODE
from plansurvive.workflows import search_attributes
from plansurvive.workflows.in_steps import InSteps


class ChildAgents(InSteps):
    """The agents of one Run's steps. `children` stops and hears them."""

    tools: ClassVar[tuple[str, ...]] = (AGENT,)
    workflow_type: ClassVar[str] = "AgentWorkflow"

    def __init__(self, schedule: Schedule, place: SharedPlace) -> None:
        self._schedule, self._handles, self._place = schedule, place.handles, place

    def start(self, step: Step, args: Mapping[str, Any]) -> asyncio.Task[dict[str, Any]]:
        """Start an agent for the step. The task returns what a tool's activity would; raises ApplicationError."""
        self._schedule.start(step.id, workflow.now())
        self._run.steps[step.id].calls += 1
        return asyncio.create_task(self._work(step, dict(args)))

    async def _work(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        said = await judged(self._schedule, step, args, self._place.execution.place)
        await self._place.settled(step)
        began = workflow.now()
        agent = self._agent(step, args)
        name = agent.run.plan.id or ""
        earlier = f", resuming '{agent.run.resumes}'" if agent.run.resumes else ""
        self._run.note(LogKind.AGENT, f"agent '{name}' started{earlier}", began, step.id, subject=name)
        try:
            result = await self._result(step, agent, name)
        except (ChildWorkflowError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error) or not isinstance(error, ChildWorkflowError):
                await cancel(name)
                await self._until_ended(step.id)
                raise asyncio.CancelledError from error
            raise self._failure(step, name, error.cause) from error
        finally:
            self._handles.forget(step.id)
        return {**self._returned(step, result, (workflow.now() - began).total_seconds() * 1_000), **said}

    async def _result(self, step: Step, agent: AgentRun, name: str) -> dict[str, Any]:
        opened(self._run, step, agent, asks=must_ask(self._schedule))
        child = await self._handles.start(
            step.id,
            self.workflow_type,
            {"agent": agent.model_dump(mode="json", exclude_defaults=True)},
            name,
            _memo(agent),
            self._index(agent),
            f"{step.id} · {agent.run.plan.title}",
        )
        self._run.forget_child(step.id)  # not before: if this agent never begins, the next run resumes that one
        self._handles.caught_up(step.id, self._run)
        return await asyncio.shield(child)  # so that a cancelled step can wait for its agent's last report

    async def _until_ended(self, step_id: str) -> None:
        """Wait until a cancelled agent has ended: before that it reports its last calls, files and tokens."""
        if step_id not in self._handles:
            return
        if await self._handles.ended(step_id):  # else the account stays open, for `plan resume` to settle
            accounts.closed(self._run, step_id, lost=False)

    def _index(self, agent: AgentRun) -> TypedSearchAttributes | None:
        """The agent's search attributes; None when they are not registered on the server."""
        run, resumes = agent.run, agent.run.resumes if search_attributes.takes_resumes() else ""
        known = self._run.facts.search_attributes
        return search_attributes.first(PlanStatus.RUNNING.value, run.plan.title, resumes) if known else None

    def _returned(self, step: Step, result: dict[str, Any], duration: float) -> dict[str, Any]:
        end = result["agent"]["end"]
        self._place.ended(result)
        accounts.ended(self._run, step.id, result, workflow.now())
        self._note_tasks(step, result)
        if end != "completed":
            code = OVERRUN_CODE if end == "budget" else f"AGENT_{str(end).upper()}"
            text = f"agent '{result['planId']}' stopped: {result['stopped']}{_done_so_far(result)}"
            raise ApplicationError(text[:4_000], _files(result), type=code)
        return {"value": result["value"], "duration": duration, **_files(result)}

    def _failure(self, step: Step, name: str, cause: BaseException | None) -> ApplicationError:
        files: dict[str, Any] = {"wrote": {}}
        if isinstance(cause, ApplicationError) and cause.details and isinstance(cause.details[0], dict):
            self._place.ended(cause.details[0])
            accounts.ended(self._run, step.id, cause.details[0], workflow.now())
            self._note_tasks(step, cause.details[0])
            files = _files(cause.details[0])
        accounts.closed(self._run, step.id, lost=True)
        text = f"agent '{name}': {getattr(cause, 'message', cause)}"
        return ApplicationError(text[:4_000], files, type=getattr(cause, "type", None) or "AGENT_FAILED")

    def _agent(self, step: Step, args: dict[str, Any]) -> AgentRun:
        run = self._run
        order = order_of_step(args, run.plan.id or "", step.id)
        name = agent_of_step(run.plan.id or "", step.id, run.steps[step.id].calls)
        options = Options(
            workspace=run.workspace_of(step), approve_all=run.options.approve_all, by=run.options.by,
            history_limit=run.options.history_limit, parts=self._schedule.rules.parts_for_child(run, step, None),
            directories=directories_for(run, step, run.queue_of(step), run.workspace_of(step)),
        )  # fmt: skip
        agent = self._earlier(step, order, name) or AgentRun.of(order, name, options)
        agent.run.options, agent.run.unsigned, agent.run.owns = options, run.unsigned, run.owns
        agent.run.plan = agent.run.plan.model_copy(update={"queue": run.queue_of(step)})
        agent.run.parent = ParentLink(plan_id=run.plan.id or "", step_id=step.id)  # people are told for what it works
        # What a file was like is known to all; what its agents.md says, only to the conversation that was shown it.
        self._place.give(step, agent.run)
        agent.run.files.stamps = stamps_for(run, step) | agent.run.files.stamps
        return agent

    def _earlier(self, step: Step, order: AgentOrder, name: str) -> AgentRun | None:
        """The agent that worked on the step before the plan was resumed, if its order was the same."""
        stored = self._run.agents.get(step.id)
        try:
            agent = AgentRun.model_validate(stored) if stored is not None else None
        except ValidationError:
            return None  # written by another version of this program: the step starts over
        return for_step(agent, order, name, workflow.now()) if agent and asks_the_same(agent.order, order) else None

    def _note_tasks(self, step: Step, result: dict[str, Any]) -> None:
        state = self._run.steps[step.id]
        note_end(state, result["agent"])
        if (work := state.known_part(AtWork)) is not None:
            done = sum(task["status"] == "done" for task in result["agent"]["tasks"])
            state.keep(work.model_copy(update={"done": min(len(work.tasks), done)}))

    @property
    def _run(self) -> Run:
        return self._schedule.run


def _files(result: dict[str, Any]) -> dict[str, Any]:
    """What an agent's result says about files, in the fields of a Return."""
    return {name: result[name] for name in ("wrote", "deleted", "shared", "sharedWith", "moreFiles") if name in result}


def _done_so_far(result: dict[str, Any]) -> str:
    """What an agent that did not complete has done, for people: the tasks, the calls, the files."""
    tasks = [task for task in result["agent"]["tasks"] if task["status"] == "done"]
    parts = [f"{len(tasks)} of {len(result['agent']['tasks'])} tasks"] if result["agent"]["tasks"] else []
    called = sum(result.get("called", {}).values())
    wrote = len(result["wrote"])
    parts += [number_of(called, "tool call"), f"{number_of(wrote, 'file')} written"] if called else []
    summaries = "".join(f"\n- {task['objective']}: {task.get('summary') or 'done'}" for task in tasks)
    return f"; done so far: {', '.join(parts)}{summaries}" if parts else ""


def _memo(agent: AgentRun) -> dict[str, Any]:
    """The agent's memo: its title for lists, and the ids of its plan, its step and the agent it resumes."""
    title, order = agent.run.plan.title, agent.order
    links = {"planId": order.plan_id, "stepId": order.step_id}
    return {"title": title, "request": title, **links, **({"resumes": agent.run.resumes} if agent.run.resumes else {})}

"""The steps of one Run that are plans, and what agents have in common with them: stops and hears child workflows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from temporalio import workflow

from plansurvive.features.children.place import SharedPlace
from plansurvive.features.children.plans import ChildPlans
from plansurvive.features.children.requests import ChildRequests
from plansurvive.plans.child_state import AtWork
from plansurvive.plans.execution import accounts
from plansurvive.plans.execution.messages import AgentProgress, Control
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.run import Run
from plansurvive.plans.usage import Permission
from plansurvive.plans.views.steps.child import asks_now
from plansurvive.workflows.in_steps import InSteps


def note_progress(run: Run, message: AgentProgress, now: datetime) -> None:
    """Apply a progress message to its step, and log it. Ignored if the step was deleted in the meantime."""
    state = run.steps.get(message.step_id)
    if state is None:
        return
    work = (state.known_part(AtWork) or AtWork()).model_copy()
    work.tasks = work.tasks if message.tasks is None else message.tasks
    work.done = work.done if message.done is None else min(message.done, len(work.tasks))
    state.notes = state.notes if message.notes is None else message.notes
    if message.asks is not None and message.asks != work.asks:
        work.asks = message.asks
        run.next_seq()  # what Temporal's UI shows of the plan is written anew
    state.keep(work)
    percent = 100 * work.done // len(work.tasks) if work.tasks else None
    if message.line:
        run.note(LogKind.AGENT, message.line, now, message.step_id, progress=percent)


class ChildSteps(InSteps):
    """Starts child plans; stops and hears all child workflows of one Run's steps, agents as well."""

    tools = (PLAN,)

    def __init__(self, schedule: Schedule, place: SharedPlace, exceeds: Callable[[str, Permission], None]) -> None:
        """`exceeds`: see `InSteps.exceeds`."""
        self._schedule, self._handles = schedule, place.handles
        self.plans = ChildPlans(schedule, self._handles, place)
        self._requests = ChildRequests(schedule, self._handles, exceeds)

    def start(self, step: Step, args: Mapping[str, Any]) -> asyncio.Task[dict[str, Any]]:
        """Start the child of a step. The task returns what a tool's activity would; raises ApplicationError."""
        self._schedule.start(step.id, workflow.now())
        return self.plans.start(step, dict(args))

    def interrupt(self, step_id: str) -> None:
        """Signal a step's child to stop at its next safe point; its step ends then."""
        self._handles.interrupt(step_id)

    def pause(self, action: Literal["pause", "unpause"], message: Control) -> None:
        """Pass a pause on to agents and child plans, or its end. What they are doing they finish, as other steps do.

        Where decisions are signed, the end of a pause needs a signature for each of them, which the client sends.
        """
        if action == "unpause" and self._schedule.run.facts.must_sign:
            return
        said = message.model_dump(mode="json", include={"by", "via"}, exclude_defaults=True) | {"above": True}
        for step_id in self._handles:
            self._handles.signal(step_id, action, said)

    def received(self, message: AgentProgress) -> None:
        """Take over a child's report. Raises Refused if it is not from the child that works on the step."""
        run = self._schedule.run
        if message.agent_id:
            accounts.received(run, message, workflow.now())
        if message.child is None:
            return note_progress(run, message, workflow.now())
        state = run.steps.get(message.step_id)
        if message.agent_id and state is not None and state.child is not None:
            asks = asks_now(run.plan.id or "", message.step_id, state.child.report, message.child)
            state.child = state.child.model_copy(update={"report": message.child})
            if asks:
                run.note(LogKind.CHILD, asks, workflow.now(), message.step_id, subject=state.child.plan_id)
        return None

    def before_start(self) -> None:
        """Answer the children that ask whether they may send their next LLM request."""
        self._requests.turn()

"""The steps of one run as activities and timers: starts what may start, settles what has ended.

One loop, fed by done-callbacks: a step starts when its own dependencies are done, whatever else is still running. What
follows from an outcome is decided by `plans.execution.schedule`; this module only does it. Nothing here raises for what
a step, a person or a server did.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans.activity_io import Return
    from plans.change_log import logged
    from plans.definition.conditions import holds
    from plans.definition.references import Filled
    from plans.errors import BadExpression, BadReference, Refused
    from plans.execution import approvals
    from plans.execution.apply_edits import Revised
    from plans.execution.file_tracking import track
    from plans.execution.messages import Decide
    from plans.execution.schedule import Outcome, Schedule
    from plans.execution.step_values import StepValues, size_of
    from plans.execution.tool_history import note_failure, note_files
    from plans.model import DEFAULT_PARALLEL, Step, ToolSpec
    from plans.run import LogKind, PlanStatus, Run, Status
    from workflows import child_agents, timers, tool_call
    from workflows.approval_timers import ApprovalTimers
    from workflows.outcomes import cancelled, completed, failed, left_behind, of_activity, skipped
    from workflows.recovery import StepRecovery

ACTIVATION_BYTES = 1_000_000
"""Arguments sent in one workflow task: the server refuses more than 4 MB of commands (TEMPORAL.md 2)."""


class Execution:
    """The moving parts of one run. The Run holds all that must survive; this can be made anew from it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.schedule = Schedule(run)
        self._steps = {step.id: step for step in run.plan.steps}
        self._flying: dict[str, asyncio.Future[Any]] = {}
        self._landed: deque[tuple[str, asyncio.Future[Any]]] = deque()
        self._deadlines = ApprovalTimers()
        self._mending = StepRecovery(self)
        self._delegates = child_agents.ChildAgents(run)
        self._sent = 0
        self._seen = -1

    @property
    def in_flight(self) -> list[str]:
        """The steps about which activities run: these cannot be carried into another run of the workflow."""
        return [name for name in self._flying if not self._is_timer(name)] + self._mending.in_flight

    @property
    def has_news(self) -> bool:
        """Whether something happened since the last turn."""
        return bool(self._landed or self._deadlines.have_passed or self._mending.has_news or self.run.seq != self._seen)

    def turn(self, starting: bool = True) -> None:
        """Settle what ended, apply what was decided, start what may start."""
        self._sent = 0
        while self._landed:
            self._settle(*self._landed.popleft())
        for name in self._deadlines.passed():
            self._expire(name)
        self._mending.turn()
        for name in [name for name in self.schedule.awaiting if name in self.run.decisions]:
            self._deadlines.drop(name)
            if not self._mending.decided(name):
                self.schedule.answered(name)
        if starting and self.run.status is PlanStatus.RUNNING:
            self._start_ready()
        self._seen = self.run.seq

    def resume_timers(self) -> None:
        """Set the timers again that a run of the workflow left to the next one."""
        self._mending.resume()
        for name, state in self.run.steps.items():
            if state.status is Status.RUNNING:
                self._fly(name, timers.sleep_of(state))
            elif state.awaiting and state.deadline:
                self._deadlines.keep(name, state.deadline)

    def revise(self, revised: Revised) -> None:
        """Go on with a plan that was edited; what was approved with other arguments is asked again."""
        run, now = self.run, workflow.now()
        again = approvals.outdated(run, revised.plan, revised.changed)
        for name in again:
            approvals.void(run, name, now)
        for name in revised.changed & run.steps.keys():
            run.steps[name].args = None
        self.schedule.revise(revised.plan, revised.skipped, revised.unskipped, now)
        self._steps = {step.id: step for step in run.plan.steps}
        for name in again:
            self.schedule.answered(name)
        for name in [name for name in self._deadlines.names if name not in run.steps or not run.steps[name].awaiting]:
            self._deadlines.drop(name)
        run.decisions = {name: decision for name, decision in run.decisions.items() if name in run.steps}
        run.problems, run.revisions = revised.problems, logged(run.revisions, revised.revision)
        what = ", ".join(revised.revision.ops)
        by = f" by {revised.revision.by}" if revised.revision.by else ""
        run.note(LogKind.EDITED, f"version {run.plan.version}{by}: {what}", now)

    def append(self, steps: list[Step]) -> None:
        """Take in more steps: the calls an agent wants made."""
        plan = self.run.plan
        self.schedule.revise(plan.model_copy(update={"steps": [*plan.steps, *steps]}), {}, (), workflow.now())
        self._steps |= {step.id: step for step in steps}

    def interrupt(self, reason: str) -> None:
        """Start nothing more. What runs may end; what the workflow itself waits for ends at once."""
        self.run.interrupted = True
        self.schedule.stop(reason, workflow.now())
        self._deadlines.cancel()
        for name, handle in self._flying.items():
            if self._is_timer(name):
                handle.cancel()
            elif self._spec(name).durable:
                self._delegates.interrupt(name)

    async def cancel(self) -> None:
        """Tell every running step, wait until each has cleaned up, settle them."""
        self.schedule.stop("the plan was cancelled", workflow.now())
        await self._mending.cancel()
        self._deadlines.cancel()
        for handle in self._flying.values():
            handle.cancel()
        while self._flying:
            await workflow.wait_condition(lambda: bool(self._landed))
            self.turn(starting=False)

    def _start_ready(self) -> None:
        limit = self.run.options.max_parallel or self.run.plan.max_parallel or DEFAULT_PARALLEL
        while self.schedule.ready and self.schedule.running < limit:
            if self._sent > ACTIVATION_BYTES and self._flying:
                return
            self._consider(self._steps[next(iter(self.schedule.ready))])

    def _consider(self, step: Step) -> None:
        """Start one ready step, or ask for it, or settle it at once."""
        now, decision = workflow.now(), self.run.decisions.get(step.id)
        if decision is not None and not decision.approved:
            return self._end(step.id, skipped(approvals.DENIED, now, opens=False, code="DENIED"))
        values = StepValues(self.run, self.schedule.needs(step.id))
        try:
            if step.when is not None and not holds(step.when, values.loaded(step.when)):
                return self._end(step.id, skipped(f"condition not met: {step.when}", now))
            filled = self._fill(step, values)
            tool_call.check_args(self._spec(step.id), filled)
        except (BadReference, BadExpression) as error:
            return self._end(step.id, failed(error.code, error.message, now))
        if decision is not None and not approvals.stands(self.run, step, filled.args):
            approvals.void(self.run, step.id, now)
            return self._ask(step, filled.args, now)
        if decision is None and approvals.asks(self.run, step, filled.args):
            return self._ask(step, filled.args, now)
        self.schedule.start(step.id, now)
        if step.tool == child_agents.TOOL:
            return self._fly(step.id, self._delegates.start(step, filled.args))
        if self._spec(step.id).durable:
            return self._sleep(step, filled.args, now)
        return self._call(step, filled, values)

    def _fill(self, step: Step, values: StepValues) -> Filled:
        return tool_call.fill_args(self.run, step, self._spec(step.id), values)

    def _call(self, step: Step, filled: Filled, values: StepValues) -> None:
        self._sent += size_of(filled.args)
        self._fly(step.id, tool_call.start(self.run, step, self._spec(step.id), filled, values))

    def _sleep(self, step: Step, args: dict[str, Any], now: datetime) -> None:
        seconds = float(args.get("seconds", 0))
        state = self.run.steps[step.id]
        state.deadline, state.calls = approvals.later(now, seconds), state.calls + 1
        self._fly(step.id, timers.sleep_of(state))

    def _fly(self, step_id: str, handle: asyncio.Future[Any]) -> None:
        self._flying[step_id] = handle
        handle.add_done_callback(lambda done: self._landed.append((step_id, done)))

    def _ask(self, step: Step, args: dict[str, Any], now: datetime) -> None:
        deadline = approvals.deadline_of(self.run, step, now)
        self.schedule.ask(step.id, now, deadline)
        self.run.steps[step.id].asked = args
        if deadline:
            self._deadlines.keep(step.id, deadline)

    def _expire(self, step_id: str) -> None:
        if step_id not in self.schedule.awaiting or step_id in self.run.decisions:
            return
        now, rule = workflow.now(), approvals.rule_of(self.run, self._steps[step_id])
        if rule.on_timeout == "fail":
            self.run.note(LogKind.EXPIRED, f"nobody decided on step '{step_id}' in {rule.timeout:g} s", now, step_id)
            self._end(step_id, failed("APPROVAL_TIMEOUT", f"nobody decided in {rule.timeout:g} s", now))
            return
        message = Decide(
            step_id=step_id, approved=rule.on_timeout == "approve", comment=f"nobody decided in {rule.timeout:g} s"
        )
        try:
            approvals.decide(self.run, message, now, "timeout")
        except Refused as refusal:
            self.run.note(LogKind.REFUSED, refusal.message, now, step_id, code=refusal.code)

    def _settle(self, step_id: str, handle: asyncio.Future[Any]) -> None:
        self._flying.pop(step_id, None)
        now, started = workflow.now(), self.run.steps[step_id].changes[-1].time
        if handle.cancelled():
            return self._end(step_id, cancelled(now, started))
        error = handle.exception()
        if error is not None:
            outcome = of_activity(error, now, started)
            self._note(step_id, left_behind(error), now)
            note_failure(self.run, self._steps[step_id], outcome.result, started)
            if (
                outcome.result.code == "APPROVAL_REQUIRED"
                and step_id not in self.run.decisions
                and not self.run.stopped
            ):
                return self._ask_again(step_id, outcome)
            return self._end(step_id, outcome)
        outcome, returned = completed(handle.result(), now, started)
        self._note(step_id, returned, now)
        return self._end(step_id, outcome)

    def _note(self, step_id: str, returned: Return, now: datetime) -> None:
        """Put down what the call did, for people and for the calls that follow."""
        note_files(self.run, step_id, returned)
        track(self.run, self._steps[step_id], returned, now)

    def _ask_again(self, step_id: str, outcome: Outcome) -> None:
        """The tool found that it needs a person's word after all, as write_file does over a file it does not know."""
        now, step = workflow.now(), self._steps[step_id]
        self.run.note(LogKind.ASKS, outcome.result.error or "", now, step_id)
        self._ask(step, self._shown_args(step), now)

    def _shown_args(self, step: Step) -> dict[str, Any]:
        try:
            return self._fill(step, StepValues(self.run, self.schedule.needs(step.id))).args
        except BadReference:
            return self.run.args_of(step)

    def end(self, step_id: str, outcome: Outcome) -> None:
        """Settle a step."""
        self._deadlines.drop(step_id)
        self.schedule.settle(step_id, outcome, workflow.now())

    def _end(self, step_id: str, outcome: Outcome) -> None:
        """Settle a step, unless the LLM is to mend its failure first."""
        self._deadlines.drop(step_id)
        if not self._mending.takes(step_id, outcome):
            self.end(step_id, outcome)

    def _is_timer(self, step_id: str) -> bool:
        return self._spec(step_id).durable and self._steps[step_id].tool != child_agents.TOOL

    def _spec(self, step_id: str) -> ToolSpec:
        return self.run.facts.tools[self._steps[step_id].tool]

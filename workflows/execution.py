"""Executes the steps of one Run as activities, child workflows and timers.

One loop, fed by done-callbacks: a step starts as soon as its own dependencies are done, whatever else is running.
`plans.execution.next_action` decides what happens to a step, `plans.execution.schedule` which statuses follow; this
module does it. A failing step, a bad message or a failing server never raises here.

One loop with done-callbacks and one wait: a single place for pausing, cancelling and continue-as-new, and no cost per
waiting step. Rejected: a task with its own condition per step (20 % more CPU at 1,500 steps), and waves, where a slow
step delays all of the next wave.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from temporalio import workflow

from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.definition.durable_tools import SLEEP
from plansurvive.plans.editing.apply_edits import Revised
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals, revision
from plansurvive.plans.execution.file_tracking import note_returned
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import (
    Ask,
    Begin,
    Call,
    Expire,
    Fail,
    List,
    Open,
    Skip,
    Sleep,
    after_failure,
    after_timeout,
    next_action,
)
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_attempts, note_failure
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.progress import WAS_CANCELLED, Further, Settle, handler_for
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import DEFAULT_PARALLEL, Step
from plansurvive.plans.run import PlanStatus, Run, Status
from plansurvive.plans.run.step_call import StepCall, StepValues, digest_of, size_of
from plansurvive.plans.step_state import Outcome
from plansurvive.workflows import list_items, timers, tool_call, worker_facts
from plansurvive.workflows.in_steps import AllInSteps, InSteps
from plansurvive.workflows.outcomes import cancelled, completed, failed, lasted, left_behind, of_activity, skipped
from plansurvive.workflows.place import Place
from plansurvive.workflows.timers import ApprovalTimers, time_of_task


class Execution:
    """The activities, child workflows and timers in flight for one Run. Can be rebuilt from the Run at any time."""

    def __init__(self, run: Run) -> None:
        self.run, self.schedule = run, Schedule(run)
        self._handles: dict[str, asyncio.Future[Any]] = {}
        self._finished: deque[tuple[str, asyncio.Future[Any]]] = deque()
        self.timers = ApprovalTimers()
        self.in_steps, self.place = AllInSteps(), Place(run)
        self._sent, self.rest = 0, timers.Rest()
        self._seen = -1
        self._postponed = dict[str, None]()
        """Ready steps whose calls a feature makes later."""
        self.before_turn: Callable[[], None] = lambda: None
        """Set by the workflow: `Admission.turn`."""

    @property
    def in_flight(self) -> list[str]:
        """Ids of steps with an activity, child workflow or LLM request in flight, which continue-as-new waits for."""
        return [name for name in self._handles if not self._is_timer(name)] + self.in_steps.in_flight

    @property
    def has_news(self) -> bool:
        """Whether something finished, timed out or changed in the Run since the last turn."""
        if self.is_held:
            return self.in_steps.is_released
        return bool(
            self.rest.is_over or self._finished or self.timers.have_passed or self.in_steps.has_news
            or self.run.seq != self._seen
        )  # fmt: skip

    @property
    def is_held(self) -> bool:
        """Whether nothing of the run may change for now: no turn begins, and messages wait."""
        return self.in_steps.holds

    def take_features(self, features: Sequence[InSteps]) -> None:
        """Take the features of the run, once `check_plan` has recorded which it has; they are asked about its steps."""
        self.in_steps = AllInSteps(features)

    def wake(self) -> None:
        """Have the loop begin a turn, as a feature has news."""
        self._seen = -1

    def turn(self, starting: bool = True) -> None:
        """Settle finished steps, apply approval timeouts, recoveries and decisions, then start ready steps."""
        self._sent, self._postponed = 0, {}
        self.before_turn()
        self.rest.end()
        self.in_steps.settle()
        now = time_of_task()
        while self._finished:
            self._take(*self._finished.popleft(), now)
        self.in_steps.turn()
        for name in self.timers.passed():
            self._expire(name)
        self.proceed()
        for name in [name for name in self.schedule.awaiting if self._is_decided(name)]:
            self.timers.stop(name)
            if not self.in_steps.decided(name):  # a decision about a recovery is not an approval of the step
                self.schedule.answered(name)
        self.in_steps.before_start()
        if starting and self.run.status is PlanStatus.RUNNING:
            self._start_ready(now)
            while self.proceed():  # a container may end at once, when it is empty
                self._start_ready(now)
        self._seen = self.run.seq

    def resume_timers(self) -> None:
        """After continue-as-new: restart timers and LLM requests that were open in the previous run of the workflow."""
        self.in_steps.resume()
        for name, state in self.run.steps.items():
            if state.status is Status.RUNNING:
                if state.deadline or not self.schedule.is_container(name):
                    self.watch(name, timers.sleep_of(state))
            elif state.awaiting and state.deadline:
                self.timers.start(name, state.deadline, state.awaiting)

    def revise(self, revised: Revised, places: bool | None = None) -> None:
        """Put an edited plan into effect. `places`: see `keep_places`."""
        worker_facts.keep_places(self.run, revised, places)
        revision.put_into_effect(self.schedule, revised, workflow.now())
        for name in self.timers.names:
            if name not in self.run.steps or not self.run.steps[name].awaiting:
                self.timers.stop(name)

    def append(self, steps: list[Step]) -> None:
        """Add steps: the tool calls of an agent's answer."""
        plan = self.run.plan
        self.schedule.revise(plan.model_copy(update={"steps": [*plan.steps, *steps]}), {}, (), workflow.now())

    def interrupt(self, reason: str) -> None:
        """Start no further step. Activities in flight may finish, children are interrupted, timers end at once."""
        self.run.interrupted = True
        self.schedule.stop(reason, workflow.now())
        self.timers.stop_all()
        for name, handle in self._handles.items():
            if self._is_timer(name):
                handle.cancel()
            else:
                self.in_steps.interrupt(name)

    async def cancel(self, reason: str = WAS_CANCELLED) -> None:
        """Cancel every running step, wait until each has cleaned up, and settle them."""
        await self.in_steps.finish()  # before the plan stops: what has run must be settled as it was begun
        self.schedule.stop(reason, workflow.now())
        await self.in_steps.cancel()
        self.cancel_running()
        self.proceed()
        if self.schedule.ready or self.schedule.queued:  # a `finally`
            self.turn()
        while self._handles or not self.schedule.idle:
            await workflow.wait_condition(lambda: self.has_news)
            self.turn()

    def cancel_step(self, step_id: str) -> None:
        """Cancel a running step alone; it is settled once it has cleaned up."""
        if (handle := self._handles.get(step_id)) is not None:
            handle.cancel()

    def cancel_running(self) -> None:
        """Cancel every running step; each is settled once it has cleaned up. Stop all timers."""
        self.timers.stop_all()
        for handle in self._handles.values():
            handle.cancel()

    def _start_ready(self, now: datetime) -> None:
        limit = self.run.options.max_parallel or self.run.plan.max_parallel or DEFAULT_PARALLEL
        while self.schedule.running + len(self._postponed) < limit:
            step_id = next((name for name in self.schedule.ready if name not in self._postponed), None)
            if step_id is None and not self.schedule.open_next(limit, now):
                return
            if (self._sent > timers.ACTIVATION_BYTES and self._handles) or self.rest.is_due():
                return  # the rest starts in a later turn: a handle or a timer is in flight, so there will be one
            if step_id is not None:  # else an item has begun, which may be done already, since an earlier run
                self._act_on(step_id, now)

    def _act_on(self, step_id: str, now: datetime) -> None:
        """Do what `next_action` decided about a ready step."""
        step, budget = self.schedule.step(step_id), Budget()
        action = next_action(self.schedule, step_id, budget)
        self.rest.worked(budget.spent)
        match action:
            case Skip(reason, opens, code):
                self.conclude(step_id, skipped(reason, now, opens, code))
            case Fail(code, message):
                self.conclude(step_id, failed(code, message, now))
            case Ask(call, voids):
                self._ask(step, call, now, voids)
            case Sleep(seconds):
                self.schedule.start(step_id, now)
                self._sleep(step_id, seconds, now)
            case Begin(args):
                self._begin(step, args, now)
            case Open(opened):
                self.schedule.start(step_id, now)
                self.schedule.open(step_id, opened, now)
            case List(rule, values):
                self.schedule.start(step_id, now)
                self.watch(step_id, list_items.start(self.run, step, rule, values))
            case Call() as call if self.in_steps.postpones(step, call):
                self._postponed[step_id] = None
            case Call(filled, values, call):
                self.schedule.start(step_id, now)
                self.watch(step_id, self.started(step, filled, values, (), call))

    def started(
        self, step: Step, filled: Filled, values: StepValues, earlier: Sequence[Attempt] = (),
        call: StepCall | None = None,
    ) -> asyncio.Future[Any]:  # fmt: skip
        """The activity that makes the call of a running step, which has begun.

        `earlier`: its attempts that were made in another activity; `call`: what was decided to be called, if known.
        """
        self._sent += size_of(filled.args)
        return tool_call.start(self.schedule, step, filled, values, self.place, earlier, call)

    def _begin(self, step: Step, args: dict[str, Any], now: datetime) -> None:
        """Have a feature begin a step of its tool."""
        starter = self.in_steps.of_tool(step.tool)
        if starter is None:
            text = f"the plan was started by a worker without the feature that runs '{step.tool}'"
            self.catch_or_settle(step.id, failed("UNKNOWN_TOOL", text, now))
        elif (handle := starter.start(step, args)) is not None:
            self.watch(step.id, handle)

    def _is_decided(self, step_id: str) -> bool:
        """Whether a step that awaits a person's approval has it, or was denied."""
        return step_id in self.run.decisions and self.in_steps.of_awaited(self.run.steps[step_id].awaiting) is None

    def proceed(self, at: datetime | None = None) -> bool:
        """Go further in the containers in which everything has ended, now or `at` a time. Whether there were any."""
        any_ended = False
        while (name := self.schedule.next_ended()) is not None:
            if name in self._handles:  # it waits for its next round
                continue
            any_ended = True
            self._go_further(name, at=at)
        return any_ended

    def _go_further(self, step_id: str, rested: bool = False, at: datetime | None = None) -> None:
        """Begin what follows in a container, or settle it. `rested`: the delay before the next round is over."""
        now, state = at or workflow.now(), self.run.steps[step_id]
        match self.schedule.next_move(step_id, now):
            case Settle(outcome):
                self.schedule.settle(step_id, lasted(outcome, state, now), now)
            case Further(_, delay) if delay and not rested:
                self.schedule.rest(step_id, approvals.later(now, delay))
                self.watch(step_id, timers.sleep_of(state))
            case Further(opened, _):
                self.schedule.open(step_id, opened, now)

    def _sleep(self, step_id: str, seconds: float, now: datetime) -> None:
        state = self.run.steps[step_id]
        state.deadline, state.calls = approvals.later(now, seconds), state.calls + 1
        self.watch(step_id, timers.sleep_of(state))

    def watch(self, step_id: str, handle: asyncio.Future[Any]) -> None:
        """Settle a running step once this has ended as the activity of its tool would."""
        self._handles[step_id] = handle
        handle.add_done_callback(lambda done: self._finished.append((step_id, done)))

    def _ask(self, step: Step, call: StepCall, now: datetime, voids: bool = False) -> None:
        if voids:
            approvals.void(self.run, step.id, now)
        deadline = approvals.deadline_of(self.run, step, now)
        self.schedule.ask(step.id, now, deadline)
        approvals.ask(self.run, step.id, call.args, digest_of(call))
        if deadline:
            self.timers.start(step.id, deadline)

    def _expire(self, step_id: str) -> None:
        now = workflow.now()
        awaiting = self.run.steps[step_id].awaiting if step_id in self.run.steps else None
        if (feature := self.in_steps.of_awaited(awaiting)) is not None:
            feature.expired(step_id)
            return
        match after_timeout(self.schedule, step_id):
            case Expire(note, code, message):
                self.run.note(LogKind.EXPIRED, note, now, step_id)
                self.conclude(step_id, failed(code, message, now))
            case Decide() as decision:
                try:
                    approvals.decide(self.run, decision, now, "timeout")
                except Refused as refusal:
                    self.run.note(LogKind.REFUSED, refusal.message, now, step_id, code=refusal.code)

    def _take(self, step_id: str, handle: asyncio.Future[Any], now: datetime) -> None:
        self._handles.pop(step_id, None)
        started, step = self.run.steps[step_id].changes[-1].time, self.schedule.step(step_id)
        if step_id in self.run.opened and self._is_timer(step_id):
            self.run.steps[step_id].deadline = None
            return self._go_further(step_id, rested=True)
        if handle.cancelled():
            return self.conclude(step_id, cancelled(now, started))
        error = handle.exception()
        if error is None and self.schedule.is_container(step_id):
            return self.schedule.open(step_id, handle.result(), now)
        if error is None:
            outcome, returned = completed(handle.result(), now, started)
            self.schedule.rules.settled(self.run, step, returned, outcome.result)
            note_returned(self.run, step, returned, now)
            note_attempts(self.run, step, returned.attempts, returned.more_attempts)
            return self.conclude(step_id, outcome)
        outcome, left = of_activity(error, now, started), left_behind(error)
        note_returned(self.run, step, left, now)
        note_failure(self.run, step, outcome.result, started, left)
        once_more = self.schedule.rules.failed(self.run, step, left, outcome.result, now)
        match after_failure(self.schedule, step_id, outcome.result, once_more=once_more):
            case Ask(call, voids):
                self.run.note(LogKind.ASKS, outcome.result.error or "", now, step_id)
                return self._ask(step, call, now, voids)
        return self.conclude(step_id, outcome)

    def catch_or_settle(self, step_id: str, outcome: Outcome) -> None:
        """Settle a step, unless it failed and a `catch` takes that."""
        self.timers.stop(step_id)
        may_be_caught = outcome.status is Status.FAILED and self.schedule.may_start(step_id)
        handler = handler_for(self.schedule.step(step_id), outcome.result) if may_be_caught else None
        if handler is None:
            self.schedule.settle(step_id, outcome, time_of_task())
        else:
            self.schedule.catch(step_id, Opened(body=outcome.result, handler=handler), workflow.now())

    def conclude(self, step_id: str, outcome: Outcome) -> None:
        """Settle a step, unless it failed and a feature takes that, as recovery by the LLM does, or a `catch`."""
        self.timers.stop(step_id)
        if not self.in_steps.takes(step_id, outcome):
            self.catch_or_settle(step_id, outcome)

    def _is_timer(self, step_id: str) -> bool:
        if self.schedule.is_container(step_id):
            return self.run.steps[step_id].deadline is not None  # else its items are being listed
        return self.schedule.step(step_id).tool == SLEEP

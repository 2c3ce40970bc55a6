"""THE decision: which status follows from what. The only writer of a status, a step's or a plan's, in the project.

Rules (DESIGN 2.5)
- Before the plan begins every step is pending. Then a step with open dependencies is blocked, one without is ready.
- A step's dependencies are those it states and those it references (REQUIREMENTS A7).
- completed opens its dependents. skipped opens them too when a reviewer or a condition skipped it, except those that
  reference its value; a denied step and a failed one block theirs for good, and so on down the graph.
- A failed critical step stops the plan: nothing more starts, what runs may end, the rest is blocked for good.
- The plan ends when nothing runs and nothing can start; then no step is running, ready or pending.
- A move that cannot follow raises IllegalMove and changes nothing.

`plans.transitions` lists every legal move; ARCHITECTURE.md draws them.

Counters, not rescans: a settled step costs its dependents, not the plan. `plans.execution.readiness` derives them from
the Run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from plans.errors import IllegalMove
from plans.execution.readiness import ReadinessIndex
from plans.log import LogKind
from plans.model import Plan
from plans.run import DONE, ENDED, Change, PlanStatus, Result, Run, Status, StepState
from plans.transitions import PLAN_MOVES, STEP_MOVES


class Outcome(NamedTuple):
    """How a step ended. `opens`: dependents that do not use its value may run."""

    status: Status
    result: Result
    opens: bool = True


SKIPPED = "SKIPPED"
"""Code of a step that a person, or recovery, chose to leave out."""
_NOT_BEGUN = frozenset({Status.PENDING, Status.BLOCKED, Status.READY})


class Schedule(ReadinessIndex):
    """The moves of one Run. Every method takes the time and returns the steps that became ready, in plan order."""

    def begin(self, now: datetime) -> list[str]:
        """The plan begins, or goes on after a review: every pending step becomes ready or blocked."""
        if self.run.status not in (PlanStatus.DRAFT, PlanStatus.REVIEW):
            raise IllegalMove(f"a plan that is {self.run.status} cannot begin")
        _turn(self.run, PlanStatus.RUNNING)
        self.run.started = self.run.started or now
        self._place(now)
        return list(self._ready)

    def revise(self, plan: Plan, skipped: Mapping[str, str], unskipped: Iterable[str], now: datetime) -> None:
        """The steps are those of another plan, some skipped with a reason: what has not begun follows anew."""
        run = self.run
        run.plan, run.steps = plan, {step.id: run.steps.get(step.id) or StepState() for step in plan.steps}
        self._index()
        for name in unskipped:
            self._move(name, Status.PENDING, now)
            run.steps[name].result, run.steps[name].reason = None, ""
        for name, reason in skipped.items():
            run.steps[name].never = False
            self._move(name, Status.SKIPPED, now)
            run.steps[name].result = Result(ok=False, error=reason, code=SKIPPED, timestamp=now)
            run.steps[name].reason = reason
        self._index()
        if run.started is not None:
            self._place(now)

    def _place(self, now: datetime) -> None:
        """Every step that has not begun becomes ready, blocked, or blocked for good, as its needs are."""
        closed: dict[str, str] = {}
        for step in self.run.plan.steps:
            state = self.run.steps[step.id]
            if state.status not in _NOT_BEGUN or step.id in self._recovering:
                continue
            if state.never:
                state.never, state.reason = False, ""
            why = next((name for name in self.open_needs(step.id) if self.run.steps[name].status in DONE), "")
            to = Status.BLOCKED if why or self._open[step.id] or self.run.stopped else Status.READY
            if state.status is not to:
                self._move(step.id, to, now)
            if why:
                closed[step.id] = why
        for name, why in closed.items():
            self._never(self.run.steps[name], f"'{why}' {self._how(why)}")
            self._release(name, now)

    def review(self) -> None:
        """The plan waits for a person to begin it; of one that runs, what runs goes on and nothing else starts."""
        if self.run.status not in (PlanStatus.DRAFT, PlanStatus.RUNNING, PlanStatus.PAUSED):
            raise IllegalMove(f"a plan that is {self.run.status} cannot go into review")
        _turn(self.run, PlanStatus.REVIEW)

    def pause(self, now: datetime, text: str) -> bool:
        """No step starts until `unpause`. False when there was nothing to pause."""
        if self.run.status is not PlanStatus.RUNNING:
            return False
        _turn(self.run, PlanStatus.PAUSED)
        self.run.note(LogKind.PAUSED, text, now)
        return True

    def unpause(self, now: datetime, text: str) -> bool:
        """Steps may start again. False when the plan was not paused."""
        if self.run.status is not PlanStatus.PAUSED:
            return False
        _turn(self.run, PlanStatus.RUNNING)
        self.run.note(LogKind.UNPAUSED, text, now)
        return True

    def start(self, step_id: str, now: datetime) -> None:
        """A ready step runs. Not while the plan is paused, nor while the step waits for a person."""
        if self.run.status is not PlanStatus.RUNNING:
            raise IllegalMove(f"step '{step_id}' cannot start: the plan is {self.run.status}")
        if step_id in self._awaiting:
            raise IllegalMove(f"step '{step_id}' cannot start: it waits for {self.run.steps[step_id].awaiting}")
        self._move(step_id, Status.RUNNING, now)

    def ask(
        self,
        step_id: str,
        now: datetime,
        deadline: datetime | None = None,
        awaiting: Literal["approval", "recovery"] = "approval",
    ) -> None:
        """Mark a step as awaiting approval or recovery. A running step goes back to ready first."""
        state = self._state(step_id)
        if self.run.stopped or step_id in self._awaiting:
            raise IllegalMove(f"step '{step_id}' cannot ask: {self.run.stopped or 'it asks already'}")
        if state.status is Status.RUNNING:
            self._move(step_id, Status.READY, now)
        elif state.status is Status.READY:
            state.changes.append(Change(seq=self.run.next_seq(), time=now, status=Status.READY))
        else:
            raise IllegalMove(f"step '{step_id}' is {state.status} and cannot ask for approval")
        state.awaiting, state.deadline = awaiting, deadline
        self._list(step_id)

    def answered(self, step_id: str) -> None:
        """A person, or the LLM, decided: the step is ready again."""
        if step_id in self._awaiting or step_id in self._recovering:
            self.run.steps[step_id].awaiting = self.run.steps[step_id].deadline = None
            self._list(step_id)

    def settle(self, step_id: str, outcome: Outcome, now: datetime) -> list[str]:
        """A step ended: its dependents become ready, or are blocked for good."""
        if outcome.status not in DONE:
            raise IllegalMove(f"step '{step_id}' cannot end as {outcome.status}")
        state = self._state(step_id)
        if state.status is Status.PENDING:
            raise IllegalMove(f"step '{step_id}' cannot end: the plan has not begun")
        self._move(step_id, outcome.status, now)
        state.result, state.deadline = outcome.result, None
        if outcome.status is Status.SKIPPED:
            state.reason = outcome.result.error or ""
            state.never = not outcome.opens
        if outcome.status is Status.FAILED and self._is_critical(step_id):
            self.stop(f"critical step '{step_id}' failed", now)
        return self._release(step_id, now)

    def stop(self, reason: str, now: datetime) -> None:
        """Nothing more starts; what is ready is blocked for good, what runs may end."""
        if self.run.stopped or self.run.status in ENDED:
            return
        self.run.stopped = reason
        self.run.note(LogKind.STOPPED, reason, now)
        # Plan order, which a reload gives as well: the order of `_ready` is lost by continue-as-new.
        for name in sorted([*self._ready, *self._awaiting], key=self._position.__getitem__):
            state = self.run.steps[name]
            if state.failure is not None:  # it was to be mended
                self._move(name, Status.FAILED, now)
                state.result, state.failure, state.proposal = state.failure, None, None
                continue
            self._move(name, Status.BLOCKED, now)
            self._never(state, reason)

    def end(self, now: datetime, cancelled: bool = False) -> PlanStatus:
        """Nothing runs any more: every step gets its last status, and the plan its own."""
        if self.running or self.run.status in ENDED:
            raise IllegalMove(f"a plan that is {self.run.status} with {self.running} running steps cannot end")
        for name, state in self.run.steps.items():
            if state.status in (Status.PENDING, Status.READY):
                self._move(name, Status.BLOCKED, now)
            if state.status is Status.BLOCKED and not state.never:
                self._never(state, self.run.stopped or self._why_not(name))
        _turn(self.run, self._last_status(cancelled))
        self.run.ended = now
        return self.run.status

    def _release(self, step_id: str, now: datetime) -> list[str]:
        """Dependents of a settled step: count down, or block for good and go on to theirs."""
        ready: list[str] = []
        blocking = deque([step_id])
        while blocking:
            name = blocking.popleft()
            for dependent in self._dependents[name]:
                state = self.run.steps[dependent]
                if state.status is not Status.BLOCKED or state.never:
                    continue
                if not self._is_open(name, self._needs[dependent][name]):
                    self._never(state, f"'{name}' {self._how(name)}")
                    blocking.append(dependent)
                    continue
                self._open[dependent] -= 1
                if not self._open[dependent] and not self.run.stopped:
                    self._move(dependent, Status.READY, now)
                    ready.append(dependent)
        return sorted(ready, key=self._position.__getitem__)

    def _never(self, state: StepState, reason: str) -> None:
        state.never, state.reason, state.deadline = True, reason, None

    def _move(self, step_id: str, to: Status, now: datetime) -> None:
        state = self._state(step_id)
        if state.never or to not in STEP_MOVES.get(state.status, ()) or self.run.status in ENDED:
            raise IllegalMove(f"step '{step_id}' is {state.status} and cannot become {to}")
        self.counts[state.status] -= 1
        self.counts[to] += 1
        state.status = to
        state.changes.append(Change(seq=self.run.next_seq(), time=now, status=to))
        state.awaiting = None
        self._list(step_id)

    def _state(self, step_id: str) -> StepState:
        if step_id not in self.run.steps:
            raise IllegalMove(f"the plan has no step '{step_id}'")
        return self.run.steps[step_id]


def conclude(run: Run, status: PlanStatus, reason: str, now: datetime) -> None:
    """The end of an agent's run: its status follows from its answer and limits, not from the calls that failed."""
    if status not in ENDED:
        raise IllegalMove(f"an agent's run cannot end as {status}")
    if status is not run.status:
        _turn(run, status)
    run.ended, run.stopped = now, run.stopped or reason


def reset_to_draft(run: Run) -> None:
    """A run copied from an ended one, to go on from it: a draft that has not begun. Its steps stay as they are."""
    run.status, run.stopped, run.started, run.ended = PlanStatus.DRAFT, "", None, None


def left_out(reason: str, result: Result | None = None, opens: bool = True) -> StepState:
    """The state of a step that a new run leaves out from the beginning."""
    return StepState(status=Status.SKIPPED, reason=reason, result=result, never=not opens)


def _turn(run: Run, to: PlanStatus) -> None:
    if to not in PLAN_MOVES.get(run.status, ()):
        raise IllegalMove(f"a plan that is {run.status} cannot become {to}")
    run.status = to

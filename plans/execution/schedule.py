"""The state machine of a run. No other module of the project sets the status of a step or a plan.

Rules (DESIGN 2.5)
- Before the plan begins every step is pending. Then a step with open dependencies is blocked, one without is ready.
- A step's dependencies are those it states and those it references (REQUIREMENTS A7).
- A completed step opens its dependents. So does a step skipped by a reviewer or a condition, except for those that
  reference its value. Dependents of a denied or failed step are permanently blocked, and theirs as well.
- A failed critical step stops the plan: running steps may finish, all others are permanently blocked.
- The plan ends when no step is running and none can start. An illegal move raises IllegalMove and changes nothing.

`plans.run.transitions` lists every legal move; ARCHITECTURE.md draws them.

A transition costs time in proportion to the step's dependents: `plans.execution.readiness` counts the open ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Literal

from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.flow.containers import MAX_AWAITING
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.places import Places
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan
from plansurvive.plans.run import DONE, ENDED, Change, PlanStatus, Result, Run, Status, StepState
from plansurvive.plans.run.again import taken
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.run.transitions import PLAN_MOVES, STEP_MOVES
from plansurvive.plans.step_state import SKIPPED, Outcome

_NOT_BEGUN = frozenset({Status.PENDING, Status.BLOCKED, Status.READY})


class Schedule(ReadinessIndex):
    """The moves of one Run. Moves take the current time; `begin` and `settle` return the steps that became ready."""

    rules: RuleSet = NO_RULES
    """What the features of the run add to what the core decides."""

    def begin(self, now: datetime) -> list[str]:
        """Start the plan, or continue it after a review: every pending step becomes ready or blocked."""
        if self.run.status not in (PlanStatus.DRAFT, PlanStatus.REVIEW):
            raise IllegalMove(f"a plan that is {self.run.status} cannot be started")
        _turn(self.run, PlanStatus.RUNNING)
        self.run.started = self.run.started or now
        self._give_places()
        self._place(now)
        if self.run.held:
            self.pause(now, "paused with its plan", held=True)
        return list(self._ready)

    def revise(self, plan: Plan, skipped: Mapping[str, str], unskipped: Collection[str], now: datetime) -> None:
        """Replace the plan, and skip or unskip steps; the status of steps that have not begun is determined again."""
        run = self.run
        run.plan = plan
        run.steps = {name: run.steps.get(name) or StepState() for name in run.redraw().nodes}
        self._index()
        for name in unskipped:
            self._move(name, Status.PENDING, now)
            run.steps[name].result, run.steps[name].reason = None, ""
        for name, reason in skipped.items():
            run.steps[name].permanently_blocked = False
            self._move(name, Status.SKIPPED, now)
            run.steps[name].result = Result(ok=False, error=reason, code=SKIPPED, timestamp=now)
            run.steps[name].reason = reason
        if skipped or unskipped:
            self._index()  # skips change the open dependencies that `_place` reads
        if run.started is not None:
            self._place(now)

    def _place(self, now: datetime, names: Iterable[str] | None = None) -> None:
        """Set the steps that have not begun (or `names`) to ready or blocked, by their dependencies."""
        permanently_blocked: dict[str, str] = {}  # with the dependency that will never let it start
        any_done = any(self.counts[status] for status in DONE)
        for name in list(self.outline.nodes) if names is None else names:
            state = self.run.steps[name]
            if state.status not in _NOT_BEGUN or name in self._recovering:
                continue
            if state.permanently_blocked:
                state.permanently_blocked, state.reason = False, ""
                self._containers.reopened(name)
            blocker = ""
            if any_done and name in self._needs:  # in a plan that begins, none of thousands of needs has ended
                blocker = next((need for need in self.open_needs(name) if self.run.steps[need].status in DONE), "")
            to = Status.BLOCKED if blocker or self._open.get(name) or not self.may_start(name) else Status.READY
            if state.status is not to:
                self._move(name, to, now)
            if blocker:
                permanently_blocked[name] = blocker
        # Only now that every step has its status: blocking one permanently does the same to its dependents.
        for name, blocker in permanently_blocked.items():
            self._block_permanently(name, f"'{blocker}' {self._how(blocker)}")
            self._release(name, now)

    def open(self, step_id: str, opened: Opened, now: datetime) -> None:
        """Begin what is inside a running container, or go further in it: its new steps become ready or blocked."""
        self.run.opened[step_id] = opened
        self._list(step_id)
        self._grow(step_id, now)
        self._containers.began(step_id)

    def open_next(self, limit: int, now: datetime) -> bool:
        """Have steps that wait for places take those that are free, else begin the next item of a loop that has room
        for it. False if nothing can begin.
        """
        if self._places is not None:
            if self._containers.any_ended:  # what follows in them keeps its places
                return False
            if self._admit(self._places):
                return True
        if not self.run.opened or len(self._awaiting) >= MAX_AWAITING:
            return False
        has_room = self._places.room if self._places is not None else None
        if (name := self._containers.next_hungry(limit, has_room)) is None:
            return False
        self.run.opened[name].began += 1
        self._grow(name, now)
        self._containers.fed(name)
        return True

    def rest(self, step_id: str, until: datetime) -> None:
        """A running repetition rests until its next round."""
        self.run.steps[step_id].deadline = until
        self._list(step_id)

    def _admit(self, places: Places) -> bool:
        """Let the steps go on that get their places. Whether there are any."""
        any_admitted = False
        for name in places.admit():
            self.run.steps[name].queued = False
            self._list(name)
            any_admitted = True
        return any_admitted

    def catch(self, step_id: str, opened: Opened, now: datetime) -> None:
        """Begin the `catch` of a call that failed for the last time, or could not begin. The step is running then."""
        if self._state(step_id).status is Status.READY:
            self._move(step_id, Status.RUNNING, now)
        self.open(step_id, opened, now)

    def _grow(self, step_id: str, now: datetime) -> None:
        new = self.outline.open(step_id)
        kept, run = self.run.kept, self.run
        for node in new:
            run.steps[node.id] = state = taken(kept, self.outline, node) or StepState()
            state.closes = run.steps[step_id].closes
            self.counts[state.status] += 1
            self._position[node.id] = len(self._position)
            if state.status in DONE and node.id in kept.opened:
                run.opened[node.id] = kept.opened.pop(node.id)
                self._grow(node.id, now)
        is_loop = self.outline.nodes[step_id].kind == "each"
        for node in new:
            self._count(node)
            if is_loop and self._places is not None:
                self._places.begin(node.id)
        self._place(now, [node.id for node in new])

    def close(self, closing: Closing, now: datetime) -> None:
        """Begin a part of what closes the plan, its next undo or its `finally`, although the plan has stopped."""
        if (closing.cancelled or self.run.failed_as) and self.run.status in (PlanStatus.PAUSED, PlanStatus.REVIEW):
            _turn(self.run, PlanStatus.RUNNING)
        self._place(now, [self._enter(closing)])

    def review(self) -> None:
        """Put the plan into review, until `begin`. Running steps continue, no other step starts."""
        if self.run.status not in (PlanStatus.DRAFT, PlanStatus.RUNNING, PlanStatus.PAUSED):
            raise IllegalMove(f"a plan that is {self.run.status} cannot go into review")
        _turn(self.run, PlanStatus.REVIEW)

    def pause(self, now: datetime, text: str, *, held: bool = False) -> bool:
        """Let no step start until `unpause`. Whether what runs for the steps is to be paused as well.

        `held`: with the plan above, until that is unpaused; one that has not begun is paused when it does. A plan that
        was paused by itself stays so then.
        """
        run = self.run
        if run.status is PlanStatus.PAUSED:
            if run.held and not held:  # from now on it is paused by itself
                run.held = False
                run.note(LogKind.PAUSED, text, now)
            return False
        if run.status in ENDED or not (held or run.status is PlanStatus.RUNNING):
            return False
        run.held = held
        if run.status is PlanStatus.RUNNING:
            _turn(run, PlanStatus.PAUSED)
            run.note(LogKind.PAUSED, text, now)
        return True

    def unpause(self, now: datetime, text: str, *, held: bool = False) -> bool:
        """Let steps start again. Whether what runs for the steps is to be unpaused as well.

        `held`: the plan above was unpaused; what was paused by itself stays paused.
        """
        run = self.run
        if held and not run.held:
            return False
        was_held, run.held = run.held, False
        if run.status is not PlanStatus.PAUSED:
            return was_held
        _turn(run, PlanStatus.RUNNING)
        run.note(LogKind.UNPAUSED, text, now)
        return True

    def start(self, step_id: str, now: datetime) -> None:
        """Set a ready step to running. Illegal while the plan is paused or the step awaits approval."""
        if self.run.status is not PlanStatus.RUNNING:
            raise IllegalMove(f"step '{step_id}' cannot start: the plan is {self.run.status}")
        if step_id in self._awaiting:
            raise IllegalMove(f"step '{step_id}' cannot start: it awaits {self.run.steps[step_id].awaiting}")
        if step_id in self._queued:
            raise IllegalMove(f"step '{step_id}' cannot start: its loop has no place for it")
        self._move(step_id, Status.RUNNING, now)

    def ask(
        self, step_id: str, now: datetime, deadline: datetime | None = None,
        awaiting: Literal["approval", "answer", "event", "recovery"] = "approval",
    ) -> None:  # fmt: skip
        """Mark a step as awaiting a person, an event or recovery. A running step goes back to ready first."""
        state = self._state(step_id)
        if not self.may_start(step_id) or step_id in self._awaiting:
            raise IllegalMove(f"step '{step_id}' cannot await {awaiting}: {self.run.stopped or 'it already does'}")
        if state.status is Status.RUNNING:
            self._move(step_id, Status.READY, now)
        elif state.status is Status.READY:
            state.changes.append(Change(seq=self.run.next_seq(), time=now, status=Status.READY))
        else:
            raise IllegalMove(f"step '{step_id}' is {state.status} and cannot await {awaiting}")
        state.awaiting, state.deadline, state.queued = awaiting, deadline, False
        self._list(step_id)

    def settle(self, step_id: str, outcome: Outcome, now: datetime, *, waited: bool = False) -> list[str]:
        """Finish a step; `waited`: a ready one, with its answer or event. Returns steps now ready, in plan order."""
        if outcome.status not in DONE:
            raise IllegalMove(f"step '{step_id}' cannot end as {outcome.status}")
        state = self._state(step_id)
        may_end = waited or state.status is not Status.READY or outcome.status is not Status.COMPLETED
        if state.status is Status.PENDING or not may_end:
            raise IllegalMove(
                f"step '{step_id}' cannot end: {'it has not run' if self.run.started else 'it has not started'}"
            )
        self._move(step_id, outcome.status, now)
        state.result = outcome.result
        if state.deadline is not None:
            state.deadline = None
        if outcome.status is Status.SKIPPED:
            state.reason = outcome.result.error or ""
            state.permanently_blocked = not outcome.opens
            self.denials.update([state.denial] if state.denial else [])
        if outcome.status is Status.FAILED and self.run.closing is None and self._is_critical(step_id):
            self.stop(f"critical step '{step_id}' failed", now)
        return self._release(step_id, now)

    def stop(self, reason: str, now: datetime) -> None:
        """Stop the plan: ready steps are permanently blocked, running ones may finish."""
        if self.run.status in ENDED:
            return
        stopped, self.run.stopped = self.run.stopped, self.run.stopped or reason
        waiting = (*self._ready, *self._queued, *self._awaiting, *self._expecting)
        held = [name for name in waiting if not self.may_start(name)]
        if stopped and self.run.closing is None and not held:
            return
        self.run.note(LogKind.STOPPED, reason, now)
        # In plan order: continue-as-new does not preserve that of `_ready`, and `seq` must not depend on it.
        for name in sorted((name for name in held if name not in self._running), key=self._position.__getitem__):
            state = self.run.steps[name]
            self._move(name, Status.BLOCKED if state.failure is None else Status.FAILED, now)
            if state.failure is None:
                self._block_permanently(name, reason)
            else:  # it failed and was being recovered: that failure is final now
                state.result, state.failure, state.proposal = state.failure, None, None
        for name in [child for each in self._begun for child in self.outline.nodes[each].children]:
            state = self.run.steps[name]
            if state.status is Status.BLOCKED and not state.permanently_blocked and not self.may_start(name):
                self._block_permanently(name, reason)
        self._containers.stop()

    def end(self, now: datetime, cancelled: bool = False) -> PlanStatus:
        """End a plan without running steps: every step and the plan get their final status."""
        if (running := self.counts[Status.RUNNING]) or self.run.status in ENDED:
            raise IllegalMove(f"a plan that is {self.run.status} with {running} running steps cannot end")
        for name, state in self.run.steps.items():
            if state.status in (Status.PENDING, Status.READY):
                self._move(name, Status.BLOCKED, now)
            if state.status is Status.BLOCKED and not state.permanently_blocked:
                self._block_permanently(name, self.run.stopped or self._why_not(name))
        _turn(self.run, self.last_status(cancelled))
        self.run.ended = now
        return self.run.status

    def _release(self, step_id: str, now: datetime) -> list[str]:
        """Update the dependents of a finished step: count down, or block permanently, and theirs as well."""
        ready: list[str] = []
        blocking = deque([step_id])
        while blocking:
            name = blocking.popleft()
            for dependent in self._dependents.get(name, ()):
                state = self.run.steps[dependent]
                if state.status is not Status.BLOCKED or state.permanently_blocked:
                    continue
                if not self._lets_start(name, dependent, self._needs[dependent][name]):
                    self._block_permanently(dependent, f"'{name}' {self._how(name)}")
                    blocking.append(dependent)
                    continue
                self._open[dependent] -= 1
                if not self._open[dependent] and self.may_start(dependent):
                    self._move(dependent, Status.READY, now)
                    ready.append(dependent)
        return sorted(ready, key=self._position.__getitem__)

    def _block_permanently(self, step_id: str, reason: str) -> None:
        state = self.run.steps[step_id]
        was = state.permanently_blocked
        state.permanently_blocked, state.reason, state.deadline = True, reason, None
        if self.run.opened and not was:
            self._containers.ended(step_id)

    def _move(self, step_id: str, to: Status, now: datetime) -> None:
        run, state = self.run, self._state(step_id)
        before = state.status
        if state.permanently_blocked or to not in STEP_MOVES.get(before, ()) or run.status in ENDED:
            raise IllegalMove(f"step '{step_id}' is {before} and cannot become {to}")
        state.status = to
        self.counts[before] -= 1
        self.counts[to] += 1
        state.changes.append(Change(run.next_seq(), now, to))
        if state.awaiting is not None:
            state.awaiting = None
        if state.queued:
            state.queued = False
        if to is Status.READY:
            self._line_up(step_id)
        self._list(step_id)
        if run.opened:
            self._containers.moved(step_id, before, to)


def conclude(run: Run, status: PlanStatus, reason: str, now: datetime) -> None:
    """End an agent's run. Its status follows from its answer and limits, not from failed calls."""
    if status not in ENDED:
        raise IllegalMove(f"an agent's run cannot end as {status}")
    if status is not run.status:
        _turn(run, status)
    run.ended, run.stopped = now, run.stopped or reason


def reset_to_draft(run: Run) -> None:
    """Reset the copy of an ended run, to resume it, to a draft that has not begun. Its steps are not changed."""
    run.status, run.stopped, run.started, run.ended, run.held = PlanStatus.DRAFT, "", None, None, False


def left_out(reason: str, result: Result | None = None, opens: bool = True) -> StepState:
    """The state of a step that is skipped from the start of a new run; completed, if it is given a value."""
    status = Status.COMPLETED if result is not None and result.ok else Status.SKIPPED
    return StepState(status=status, reason=reason, result=result, permanently_blocked=not opens)


def bare(state: StepState) -> StepState:
    """The state with no more in it than its status: all that counting looks at."""
    return StepState(status=state.status, permanently_blocked=state.permanently_blocked)


def _turn(run: Run, to: PlanStatus) -> None:
    if to not in PLAN_MOVES.get(run.status, ()):
        raise IllegalMove(f"a plan that is {run.status} cannot become {to}")
    run.status = to

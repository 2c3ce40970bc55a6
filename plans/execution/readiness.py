"""Indexes over a Run (ready, awaiting, running, open dependencies), rebuilt from it and updated on each transition.

Reading an index does not scan the plan, whatever its size. Continue-as-new passes only the Run. Nothing here changes a
status: `plans.execution.schedule` does, and updates the indexes after each transition.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice

from plans.definition.dependencies import dependencies
from plans.flow.closing_steps import FINALLY, UNDO, closing_step, id_meant
from plans.model import Step
from plans.run import DONE, PlanStatus, Run, Status


def needed(run: Run, step: Step) -> dict[str, bool]:
    """A step's dependencies, steps that do not exist included; True where it uses the value."""
    return dict.fromkeys(step.depends_on, False) if run.literal else dependencies(step)


class ReadinessIndex:
    """The indexes of one Run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._index()

    def _index(self) -> None:
        """Derive every counter and list from the Run."""
        run = self.run
        self.counts = Counter(state.status for state in run.steps.values())
        self.denied = sum(state.is_denied for state in run.steps.values())
        self._position = {step.id: index for index, step in enumerate(run.plan.steps)}
        self._needs: dict[str, dict[str, bool]] = {}
        self._dependents: dict[str, list[str]] = {step.id: [] for step in run.plan.steps}
        self._open: dict[str, int] = {}
        self._ready: dict[str, None] = {}
        self._awaiting: dict[str, None] = {}
        self._recovering: dict[str, None] = {}
        self._running: dict[str, None] = {}
        self._recent: deque[str] = deque(maxlen=20)
        self._closing: dict[str, Step] = {}
        for step in run.plan.steps:
            self._count(step)
        for name in [name for name, state in run.steps.items() if state.closes] if run.closing else ():
            self._enter(name)
        for step in self._closing.values():
            self._count(step)
        moved = [name for name, state in run.steps.items() if state.changes]
        for name in sorted(moved, key=lambda name: run.steps[name].changes[-1].seq):
            self._list(name)

    def _enter(self, step_id: str) -> None:
        """Add a step that closes the plan, after those it needs: its siblings, since all others have ended."""
        self._position[step_id] = len(self._position)
        self._dependents[step_id] = []
        if (step := closing_step(self.run, step_id, self._of_plan)) is not None:
            self._closing[step_id] = step

    def _of_plan(self, step_id: str) -> Step | None:
        position = self._position.get(step_id, len(self.run.plan.steps))
        return self.run.plan.steps[position] if position < len(self.run.plan.steps) else None

    def _count(self, step: Step) -> None:
        needs = {name: uses for name, uses in needed(self.run, step).items() if name in self._position}
        if step.id in self._closing:
            meant = {id_meant(self.run, step.id, name): uses for name, uses in needed(self.run, step).items()}
            needs = {name: uses for name, uses in meant.items() if name in self._closing and name != step.id}
        self._needs[step.id] = needs
        for name in needs:
            self._dependents[name].append(step.id)
        self._open[step.id] = sum(self.run.steps[name].status not in DONE for name in needs)

    def _list(self, step_id: str) -> None:
        """Put a step into the index for its status: ready, awaiting, recovering, running or recently finished."""
        for listed in (self._ready, self._awaiting, self._recovering, self._running):
            listed.pop(step_id, None)
        state = self.run.steps[step_id]
        if state.status is Status.READY and state.awaiting == "recovery":
            self._recovering[step_id] = None
        elif state.status is Status.READY:
            (self._awaiting if state.awaiting else self._ready)[step_id] = None
        elif state.status is Status.RUNNING:
            self._running[step_id] = None
            if state.awaiting:
                self._awaiting[step_id] = None
        elif state.status in DONE:
            self._recent.append(step_id)

    @property
    def ready(self) -> Mapping[str, None]:
        """Steps that may start now, in the order they became ready."""
        return self._ready

    @property
    def awaiting(self) -> Mapping[str, None]:
        """Steps awaiting approval, in the order they began to wait; with them running agents that await a budget."""
        return self._awaiting

    @property
    def recovering(self) -> Mapping[str, None]:
        """Failed steps awaiting recovery by the LLM."""
        return self._recovering

    @property
    def running(self) -> int:
        """Number of running steps."""
        return self.counts[Status.RUNNING]

    @property
    def idle(self) -> bool:
        """Whether no step is running or ready: the plan can end."""
        return not (self.running or self._ready or self._awaiting or self._recovering)

    def step(self, step_id: str) -> Step:
        """The step with that id."""
        return self._closing.get(step_id) or self.run.plan.steps[self._position[step_id]]

    def moving(self, limit: int) -> list[str]:
        """At most `limit` steps to show of a large plan: awaiting, running, ready, then the last finished."""
        names = [*islice(self._awaiting, limit), *islice(self._running, limit), *islice(self._ready, limit)]
        return list(dict.fromkeys([*names, *reversed(self._recent)]))[:limit]

    def open_needs(self, step_id: str) -> list[str]:
        """The dependencies that block a step: not done yet, or done in a way that blocks it."""
        return [name for name, uses in self._needs[step_id].items() if not self._is_open(name, uses)]

    def needs(self, step_id: str) -> dict[str, bool]:
        """A step's dependencies; True where it uses the value."""
        return self._needs[step_id]

    def last_status(self, cancelled: bool) -> PlanStatus:
        """The status that the plan ends with. A failed undo does not change it, a failed step of `finally` may."""
        closing = self.run.closing
        if closing is None:
            return self._status_of("", cancelled)
        if closing.of:
            return PlanStatus.CANCELLED if closing.abandoned else self._status_of(UNDO, cancelled=False)
        before, then = PlanStatus(closing.ends), self._status_of(FINALLY, cancelled=False)
        if before in (PlanStatus.COMPLETED, PlanStatus.PARTIAL) and then is not PlanStatus.COMPLETED:
            return PlanStatus.FAILED if then is PlanStatus.FAILED else PlanStatus.PARTIAL
        return before

    def _status_of(self, closes: str, cancelled: bool) -> PlanStatus:
        """The status that follows from the steps of the plan, or of its `finally`."""
        states = {name: state for name, state in self.run.steps.items() if state.closes == closes}
        if cancelled:
            return PlanStatus.CANCELLED
        if self.run.aborted and not closes:
            return PlanStatus.FAILED
        if any(state.status is Status.FAILED and self._is_critical(name) for name, state in states.items()):
            return PlanStatus.FAILED
        complete = all(
            state.status in (Status.COMPLETED, Status.SKIPPED) and not state.is_denied for state in states.values()
        )
        return PlanStatus.COMPLETED if complete else PlanStatus.PARTIAL

    def _closes(self, step_id: str) -> bool:
        """Whether the step closes the plan, and may therefore start although the plan has stopped."""
        return step_id in self._closing and self.run.closing is not None and not self.run.closing.abandoned

    def _why_not(self, name: str) -> str:
        needs = self.open_needs(name)
        return f"'{needs[0]}' is not done" if needs else "the plan ended before it started"

    def _how(self, name: str) -> str:
        state = self.run.steps[name]
        if state.status is Status.BLOCKED:
            return "is blocked"
        return "failed" if state.status is Status.FAILED else f"was skipped: {state.reason}"

    def _is_open(self, name: str, uses_value: bool) -> bool:
        state = self.run.steps[name]
        if state.status is Status.SKIPPED:
            return not state.never and not uses_value
        return state.status is Status.COMPLETED

    def _is_critical(self, step_id: str) -> bool:
        step, defaults = self.step(step_id), self.run.plan.defaults
        if (step.on_failure or defaults.on_failure) == "stop":
            return True
        return defaults.critical if step.critical is None else step.critical

"""Indexes over a Run (ready, awaiting, running, open dependencies), rebuilt from it and updated on each transition.

Reading an index does not scan the plan, whatever its size. Continue-as-new passes only the Run. Nothing here changes a
status: `plans.execution.schedule` does, and updates the indexes after each transition.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import FINALLY, UNDO, outermost
from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.flow.batches.outcome import has_denied
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.flow.containers import Containers
from plansurvive.plans.flow.outline import Node
from plansurvive.plans.flow.places import Places, any_places
from plansurvive.plans.flow.progress import Further, Progress, Settle
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, PlanStatus, Run, Status, StepState, own_steps
from plansurvive.plans.step_state import ASKING

_NONE: dict[str, bool] = {}


def needed(run: Run, step: Step) -> dict[str, bool]:
    """A step's dependencies, steps that do not exist included; True where it uses the value."""
    return dict.fromkeys(step.depends_on, False) if run.literal else dependencies(step)


class ReadinessIndex:
    """The indexes of one Run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._places: Places | None = None
        run.redraw()
        self._index()

    def _index(self) -> None:
        """Derive every counter and list from the Run, with its outline as it was last drawn."""
        run = self.run
        self.counts = Counter(state.status for state in run.steps.values())
        skipped = (state for state in run.steps.values() if state.status is Status.SKIPPED)
        self.denials = Counter(denial for state in skipped if (denial := state.denial))
        self.outline = run.outline
        self._shared: dict[int, tuple[Step, dict[str, bool]]] = {}
        self._position = {name: index for index, name in enumerate(self.outline.nodes)}
        self._needs: dict[str, dict[str, bool]] = {}
        self._dependents: dict[str, list[str]] = {}
        self._open: dict[str, int] = {}
        self._ready: dict[str, None] = {}
        self._queued: dict[str, None] = {}
        self._awaiting: dict[str, None] = {}
        self._recovering: dict[str, None] = {}
        self._expecting: dict[str, None] = {}
        self._running: dict[str, None] = {}
        self._containers = Containers(self.outline, run.opened, run.steps, self.may_start)
        self._begun: dict[str, None] = {}
        self._give_places()
        self._lists = (
            self._ready,
            self._queued,
            self._awaiting,
            self._recovering,
            self._expecting,
            self._running,
            self._begun,
        )
        self._recent: deque[str] = deque(maxlen=20)
        for node in self.outline.nodes.values():
            self._count(node)
        moved = [name for name, state in run.steps.items() if state.changes]
        for name in sorted(moved, key=lambda name: run.steps[name].changes[-1].seq):
            self._list(name)
        for name in run.opened:
            self._containers.began(name)

    def _give_places(self) -> None:
        """Keep the places of loops, if there are any and the run does: known once its plan has been checked."""
        with_places = self.run.facts.places and any_places([*outermost(self.run.plan), *own_steps(self.run).values()])
        self._places = Places(self.outline, self._position.__getitem__, self._places) if with_places else None

    def _count(self, node: Node) -> None:
        """Count the open dependencies of a step, and the step in its container."""
        self._containers.add(node)
        if not node.needs_siblings:
            return
        step = node.source
        if id(step) not in self._shared:  # with the step, so that no other one gets its id
            self._shared[id(step)] = step, needed(self.run, step)
        needs = self._shared[id(step)][1]
        # Of the dependencies, those beside the step: whatever lies further out, its containers have waited for.
        if node.names is None:
            needs = {name: uses for name, uses in needs.items() if name in self.outline}
        else:
            needs = {node.names[name]: uses for name, uses in needs.items() if name in node.names}
        self._needs[node.id], self._open[node.id] = needs, 0
        for name in needs:
            self._dependents.setdefault(name, []).append(node.id)
            self._open[node.id] += not self._has_ended(name)

    def _list(self, step_id: str) -> None:
        """Put a step into the index for its status: ready, awaiting, recovering, running or recently finished."""
        for listed in self._lists:
            if step_id in listed:
                del listed[step_id]
        state = self.run.steps[step_id]
        if state.status is Status.READY:
            self._index_of(state)[step_id] = None
        elif state.status is Status.RUNNING:
            (self._begun if self.is_container(step_id) else self._running)[step_id] = None
            if state.awaiting:
                self._awaiting[step_id] = None
        elif state.status in DONE:
            self._recent.append(step_id)
        if self.run.opened:
            self._containers.mark(step_id, step_id in self._ready or (step_id in self._running and not state.awaiting))
            if self._places is not None:
                self._keep_places(self._places, step_id, state)

    def _keep_places(self, places: Places, step_id: str, state: StepState) -> None:
        """Note whether a step waits for places, or keeps them. What is denied needs none: it does not run."""
        if step_id in self._queued:
            places.queue(step_id)
        else:
            places.forget(step_id)
        is_listing_or_resting = step_id in self._begun and (step_id not in self.run.opened or bool(state.deadline))
        keeps = step_id in self._running or is_listing_or_resting
        keeps = keeps or (step_id in self._ready and not self._is_denied(step_id))
        places.mark(step_id, keeps or (step_id in self._recovering and places.has(step_id)))

    def _line_up(self, step_id: str) -> None:
        """Have a step that has become ready wait for the places that it needs, if it has none."""
        if self._places is not None:
            may_go_on = self._is_denied(step_id) or self._places.has(step_id)
            self.run.steps[step_id].queued = not may_go_on

    def _is_denied(self, step_id: str) -> bool:
        decision = self.run.decisions.get(step_id)
        return decision is not None and not decision.approved

    def _index_of(self, state: StepState) -> dict[str, None]:
        """The index of a step with status ready."""
        if state.awaiting is None:
            return self._queued if state.queued else self._ready
        if state.awaiting in ASKING:
            return self._awaiting
        return self._expecting if state.failure is None else self._recovering

    @property
    def ready(self) -> Mapping[str, None]:
        """Steps that may start now, in the order they became ready."""
        return self._ready

    @property
    def queued(self) -> Mapping[str, None]:
        """Steps that are ready but for a place in a loop: its `maxParallel` items are in progress."""
        return self._queued

    @property
    def awaiting(self) -> Mapping[str, None]:
        """Steps awaiting an approval or an answer, in the order they began to wait; also agents that await a budget."""
        return self._awaiting

    @property
    def recovering(self) -> Mapping[str, None]:
        """Failed steps whose failure a feature has taken, and may settle."""
        return self._recovering

    @property
    def expecting(self) -> Mapping[str, None]:
        """Steps awaiting what no person decides: an event."""
        return self._expecting

    @property
    def running(self) -> int:
        """Number of running steps, without the blocks and loops around them."""
        return len(self._running)

    def in_progress(self, limit: int) -> list[str]:
        """At most `limit` of the running steps, without the blocks and loops around them; first those of longest."""
        return list(islice(self._running, limit))

    @property
    def idle(self) -> bool:
        """Whether no step is running or ready: the plan can end."""
        lists = (self._ready, self._queued, self._awaiting, self._recovering, self._expecting, self._begun)
        return not (self.running or any(lists))

    @property
    def containers(self) -> Containers:
        """The counters of what is inside blocks and loops."""
        return self._containers

    def step(self, step_id: str) -> Step:
        """The step with that id, also inside a block or loop."""
        return self.outline.nodes[step_id].step

    def is_container(self, step_id: str) -> bool:
        """Whether what runs is inside the step: a block or a loop, or the `catch` of a call."""
        return step_id in self.run.opened or self.outline.nodes[step_id].kind != "call"

    def moving(self, limit: int) -> list[str]:
        """At most `limit` steps to show of a large plan: awaiting, running, ready, then the last finished."""
        names = [*islice(self._awaiting, limit), *islice(self._running, limit)]
        names += [*islice(self._ready, limit), *islice(self._queued, limit)]
        return list(dict.fromkeys([*names, *reversed(self._recent)]))[:limit]

    def open_needs(self, step_id: str) -> list[str]:
        """The dependencies that block a step: not done yet, or done in a way that blocks it."""
        return [name for name, uses in self.needs(step_id).items() if not self._lets_start(name, step_id, uses)]

    def needs(self, step_id: str) -> dict[str, bool]:
        """A step's dependencies; True where it uses the value."""
        return self._needs.get(step_id, _NONE)

    def dependents(self, step_id: str) -> Sequence[str]:
        """The steps that depend on a step."""
        return self._dependents.get(step_id, ())

    def ask_beside(self, step_id: str) -> None:
        """Mark a running step as awaiting a person's decision. It stays running, as its agent does."""
        if self._state(step_id).status is not Status.RUNNING:
            raise IllegalMove(f"step '{step_id}' is not running")
        self.run.steps[step_id].awaiting = "approval"
        self._list(step_id)

    def answered(self, step_id: str) -> None:
        """End the wait for approval, answer, event or recovery: the step is ready to start again, or still running."""
        if step_id in self._awaiting or step_id in self._recovering or step_id in self._expecting:
            state = self.run.steps[step_id]
            state.awaiting = state.deadline = None
            if state.status is Status.READY:
                self._line_up(step_id)
            self._list(step_id)

    def next_move(self, step_id: str, now: datetime) -> Further | Settle:
        """What follows in a container in which everything has ended."""
        stopped = "" if self.may_start(step_id) else self.run.stopped
        progress = Progress(self.outline, self.run.opened, self.run.steps, stopped, closes=not self.run.interrupted)
        return progress.next_move(step_id, now)

    def next_ended(self) -> str | None:
        """A running container in which everything has ended; each is given once."""
        return self._containers.next_ended()

    def may_start(self, step_id: str) -> bool:
        """Whether the step may start even if the plan has been stopped: a `finally` runs whatever happened."""
        if self.run.closing is not None:
            return not self.run.closing.abandoned
        return not self.run.stopped or (self.outline.nodes[step_id].closing and not self.run.interrupted)

    def _enter(self, closing: Closing) -> str:
        """Add the root of what closes the plan next; returns its id."""
        self.run.closing = closing
        undoes = closing.phase == "rollback"
        node = self.outline.undo(closing.undone[-1]) if undoes else self.outline.close(closing.ends)
        self.run.steps[node.id] = StepState(closes="undo" if undoes else "finally")
        self.counts[Status.PENDING] += 1
        self._position[node.id] = len(self._position)
        self._count(node)
        return node.id

    def last_status(self, cancelled: bool) -> PlanStatus:
        """The status that the plan ends with. A failed undo does not change it, a failed step of `finally` may."""
        closing, states = self.run.closing, self.run.steps
        if closing is None:
            return self._own_status(cancelled)
        if closing.of:
            whole = all(states[f"{name}.{UNDO}"].status is Status.COMPLETED for name in closing.order[: closing.begun])
            ended = PlanStatus.COMPLETED if whole and closing.begun == len(closing.order) else PlanStatus.PARTIAL
            return PlanStatus.CANCELLED if closing.abandoned else ended
        before, last = PlanStatus(closing.ends), states.get(FINALLY)
        changes = last is not None and last.closes and last.status is not Status.COMPLETED
        if not changes or before not in (PlanStatus.COMPLETED, PlanStatus.PARTIAL):
            return before
        failed = (name for name, state in states.items() if state.closes == FINALLY and state.status is Status.FAILED)
        return PlanStatus.FAILED if any(self._is_critical(name) for name in failed) else PlanStatus.PARTIAL

    def _own_status(self, cancelled: bool) -> PlanStatus:
        if cancelled:
            return PlanStatus.CANCELLED
        if (
            self.run.aborted or self.run.failed_as or self.run.status is PlanStatus.DRAFT
        ):  # a draft: its worker refused it
            return PlanStatus.FAILED
        failed = (name for name, state in self.run.steps.items() if state.status is Status.FAILED)
        if any(self._is_critical(name) for name in failed):
            return PlanStatus.FAILED
        whole = (self.run.steps[step.id] for step in self.run.plan.steps)
        complete = all(state.status in (Status.COMPLETED, Status.SKIPPED) for state in whole)
        denied = any(
            (state.status is Status.SKIPPED and state.is_denied) or (state.parts and state.child and has_denied(state))
            for state in self.run.steps.values()
        )
        return PlanStatus.COMPLETED if complete and not denied else PlanStatus.PARTIAL

    def _why_not(self, name: str) -> str:
        needs = self.open_needs(name)
        return f"'{needs[0]}' is not done" if needs else "the plan ended before it started"

    def _how(self, name: str) -> str:
        state = self.run.steps[name]
        if state.status is Status.BLOCKED:
            return "is blocked"
        return "failed" if state.status is Status.FAILED else f"was skipped: {state.reason}"

    def _lets_start(self, name: str, dependent: str, uses_value: bool) -> bool:
        """Whether a step has ended in a way that lets one that depends on it start.

        In an agent's run, a call that a person has approved is made whatever became of those before it.
        """
        decision = self.run.decisions.get(dependent) if self.run.literal else None
        if decision is not None and decision.approved and self._has_ended(name):
            return True
        state = self.run.steps[name]
        if state.status is Status.SKIPPED:
            return not state.permanently_blocked and not uses_value
        return state.status is Status.COMPLETED

    def _has_ended(self, name: str) -> bool:
        state = self.run.steps[name]
        return state.status in DONE or (self.run.literal and state.permanently_blocked)

    def _is_critical(self, step_id: str) -> bool:
        """Whether a failure of the step stops the plan: not if something around it may still deal with it."""
        if any(node.step.catch or node.kind == "each" for node in self.outline.ancestors(step_id)):
            return False
        step, defaults = self.step(step_id), self.run.plan.defaults
        if (step.on_failure or defaults.on_failure) == "stop":
            return True
        return defaults.critical if step.critical is None else step.critical

    def _state(self, step_id: str) -> StepState:
        if step_id not in self.run.steps:
            raise IllegalMove(f"the plan has no step '{step_id}'")
        return self.run.steps[step_id]

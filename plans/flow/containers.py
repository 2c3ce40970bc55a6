"""Counts what is unfinished, and what is busy, inside the containers of a run; updated on each transition.

A container has ended when nothing inside it is unfinished. An item of a loop is busy while one of its steps is running
or about to start; one that only awaits a person does not count. `places` says which items may go on after that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from plansurvive.plans.flow.batches.outcome import failures_in
from plansurvive.plans.flow.batches.split import is_split, window_of
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.flow.progress import may_begin_more
from plansurvive.plans.model import DEFAULT_PARALLEL
from plansurvive.plans.step_state import DONE, Status, StepState

MAX_AWAITING = 500
"""No further item begins while so many steps await a person: whoever decides is not flooded (FAULTS T13)."""

MAX_FAILURES = 20
"""Failed steps inside containers that are remembered for views."""


class Containers:
    """The counters of one run."""

    def __init__(
        self, outline: Outline, opened: dict[str, Opened], steps: dict[str, StepState], may_start: Callable[[str], bool]
    ) -> None:
        self._outline, self._opened, self._steps, self._may_start = outline, opened, steps, may_start
        self._unfinished: Counter[str] = Counter()
        self._busy: Counter[str] = Counter()
        self._active: set[str] = set()
        self._hungry: dict[str, None] = {}
        self._ended: dict[str, None] = {}
        self.counts: dict[str, Counter[Status]] = {}
        """By loop, the number of its items or rounds by status."""
        self.nested: Counter[Status] = Counter()
        """All steps inside containers by status."""
        self.failures: dict[str, None] = {}
        """The last of them that failed, newest last."""

    def add(self, node: Node) -> None:
        """Count a node that is new, or that of a run that is taken over."""
        if node.parent is None:
            return
        status = self._steps[node.id].status
        self._count(node.parent, status)
        if status is Status.FAILED:
            self._note_failure(node.id)
        if not has_ended(self._steps[node.id]):
            self._unfinished[node.parent] += 1

    def moved(self, step_id: str, before: Status, to: Status) -> None:
        """A step has taken another status."""
        parent = self._outline.nodes[step_id].parent
        if parent is not None:
            self._count(parent, to, before)
            if to is Status.FAILED:
                self._note_failure(step_id)
        if to in DONE:
            self.ended(step_id)

    def began(self, step_id: str) -> None:
        """A container has begun, or got further; its new nodes are counted."""
        if may_begin_more(self._outline.nodes[step_id].source, self._opened[step_id]) and self._may_start(step_id):
            self._hungry[step_id] = None
        self._check(step_id)

    def ended(self, step_id: str) -> None:
        """A step has ended, or can never start."""
        parent = self._outline.nodes[step_id].parent
        if parent is None:
            return
        self._unfinished[parent] -= 1
        node, opened = self._outline.nodes[parent], self._opened[parent]
        state = self._steps[step_id]
        # A denial is counted when the loop ends: it keeps no item from beginning.
        if node.kind == "each" and state.status is Status.FAILED and not state.counts_as_denied:
            opened.failed += failures_in(state) if is_split(node.source.for_each) else 1
            if not may_begin_more(node.source, opened):
                self._hungry.pop(parent, None)
        self._check(parent)

    def reopened(self, step_id: str) -> None:
        """A step that could never start may start after all."""
        parent = self._outline.nodes[step_id].parent
        if parent is not None:
            self._unfinished[parent] += 1
            self._ended.pop(parent, None)

    def mark(self, step_id: str, active: bool) -> None:
        """Note whether a step is running or about to start."""
        at = self._outline.nodes.get(step_id)
        if at is None or at.parent is None or active == (step_id in self._active):
            return
        (self._active.add if active else self._active.discard)(step_id)
        while at is not None and at.parent is not None:
            before = self._busy[at.parent]
            self._busy[at.parent] = before + (1 if active else -1)
            if bool(before) == bool(self._busy[at.parent]):
                return
            at = self._outline.nodes[at.parent]

    def stop(self) -> None:
        """No further item begins, except in what runs although the plan has been stopped: a `finally`."""
        for name in [name for name in self._hungry if not self._may_start(name)]:
            del self._hungry[name]
            self._check(name)

    @property
    def hungry(self) -> list[str]:
        """The loops of which further items may begin, in the order in which they are asked for one."""
        return list(self._hungry)

    def next_hungry(self, limit: int | None, has_room: Callable[[str], bool] | None = None) -> str | None:
        """A loop whose next item may begin; it goes to the end of the queue. `has_room`: of the loop's places."""
        for name in self._hungry:
            rule = self._outline.nodes[name].source.for_each
            window = (rule.max_parallel if rule is not None else None) or limit or DEFAULT_PARALLEL
            if rule is not None and is_split(rule):
                window = window_of(rule, limit or DEFAULT_PARALLEL).plans
            if self._busy[name] < window and (has_room is None or has_room(name)):
                del self._hungry[name]
                self._hungry[name] = None
                return name
        return None

    def fed(self, step_id: str) -> None:
        """The next item of a loop has begun."""
        if not may_begin_more(self._outline.nodes[step_id].source, self._opened[step_id]):
            self._hungry.pop(step_id, None)
        self._check(step_id)

    def unfinished(self, step_id: str) -> int:
        """How many of the steps directly inside a container have begun, and not ended."""
        return self._unfinished[step_id]

    @property
    def any_ended(self) -> bool:
        """Whether `next_ended` gives one."""
        return bool(self._ended)

    def next_ended(self) -> str | None:
        """A container in which everything has ended; each is given once."""
        for name in self._ended:
            del self._ended[name]
            return name
        return None

    def _count(self, parent: str, status: Status, before: Status | None = None) -> None:
        """Count a step by its status, no longer by that before."""
        counted = [self.nested]
        if self._outline.nodes[parent].kind in ("each", "repeat"):
            if parent not in self.counts:
                self.counts[parent] = Counter()
            counted.append(self.counts[parent])
        for counts in counted:
            counts[status] += 1
            if before is not None:
                counts[before] -= 1

    def _note_failure(self, step_id: str) -> None:
        self.failures[step_id] = None
        if len(self.failures) > MAX_FAILURES:
            del self.failures[next(iter(self.failures))]

    def _check(self, step_id: str) -> None:
        running = self._steps[step_id].status is Status.RUNNING
        if running and not self._unfinished[step_id] and step_id not in self._hungry:
            self._ended[step_id] = None


def has_ended(state: StepState) -> bool:
    """Whether a step has ended or can never start."""
    return state.status in DONE or (state.status is Status.BLOCKED and state.permanently_blocked)

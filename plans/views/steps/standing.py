"""Blocks and loops in the current details of a workflow, from the counters of its schedule.

The details are written at every turn of a plan: nothing here looks at the items of a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.flow.ids import pattern_of
from plansurvive.plans.run import Status
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.steps.counting import inside_view, own_children
from plansurvive.plans.views.steps.listing import is_cause_of
from plansurvive.plans.views.steps.row import status_word
from plansurvive.plans.views.steps.words import folded_line

FAILURES = 5
"""Failed steps inside others that are listed."""
LOOKED_AT = 200
"""Steps of one block that are counted one by one."""


class Standing:
    """What is inside the blocks and loops of a run at this turn."""

    def __init__(self, schedule: ReadinessIndex) -> None:
        self._schedule, self._nodes = schedule, schedule.outline.nodes
        self._awaited: dict[str, str] = {}
        self._moved: dict[str, Counter[str]] = {}
        for name in (*schedule.awaiting, *schedule.recovering) if schedule.run.opened else ():
            self._mark(name, schedule.run.steps[name].awaiting or "approval")

    def line(self, step_id: str) -> str:
        """What is inside a step in one line; empty if nothing is, or it has not begun."""
        node, opened = self._nodes.get(step_id), self._schedule.run.opened.get(step_id)
        if node is None or opened is None:
            return ""
        counted, own = self._schedule.containers.counts.get(step_id), own_children(node)
        if counted is not None:
            numbers = Counter({status.value: counted[status] for status in Status})
            numbers.update(self._moved.get(step_id, {}))
        else:
            numbers = Counter(map(self._word, own[:LOOKED_AT]))
        return folded_line(step_id, InsideView.model_validate(inside_view(node, opened, len(own), numbers)))

    def _word(self, step_id: str) -> str:
        awaited = self._awaited.get(step_id)
        return f"awaiting {awaited}" if awaited else status_word(self._schedule.run.steps[step_id])

    def _mark(self, step_id: str, awaiting: str) -> None:
        """Note on a step, and on everything around it, what is awaited in it."""
        at = self._nodes.get(step_id)
        while at is not None and at.parent is not None and at.id not in self._awaited:
            self._awaited[at.id] = awaiting
            status = self._schedule.run.steps[at.id].status.value
            self._moved.setdefault(at.parent, Counter()).update({f"awaiting {awaiting}": 1, status: -1})
            at = self._nodes[at.parent]


def top_counts(schedule: ReadinessIndex) -> Counter[Status]:
    """The number of steps of the plan by status, without those inside them."""
    return schedule.counts - schedule.containers.nested


def top_denials(schedule: ReadinessIndex) -> Counter[str]:
    """How many steps of the plan were denied, by word; none inside them."""
    if not schedule.run.opened or not schedule.denials:
        return schedule.denials
    states = (schedule.run.steps[step.id] for step in schedule.run.plan.steps)
    return Counter(denial for state in states if (denial := state.denial))


def is_inside(schedule: ReadinessIndex, step_id: str) -> bool:
    """Whether a step is inside another one."""
    node = schedule.outline.nodes.get(step_id)
    return node is not None and node.parent is not None


def folded_ids(names: Iterable[str], limit: int = 1_000) -> list[str]:
    """At most `limit` ids, several instances of one step as a pattern: `resize[*]`."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(pattern_of(name), []).append(name)
    texts = (ids[0] if len(ids) == 1 else pattern for pattern, ids in found.items())
    return list(islice(texts, limit))


def failures(schedule: ReadinessIndex) -> Iterator[str]:
    """The last steps inside others that failed by themselves, newest first."""
    names = (name for name in reversed(schedule.containers.failures) if name in schedule.run.steps)
    causes = (name for name in names if is_cause_of(schedule.run, schedule.outline.nodes[name].children, name))
    return islice(causes, FAILURES)

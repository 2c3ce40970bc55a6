"""Counts what is inside the blocks and loops of a run, for one view of it.

A plan without any costs nothing here; else one pass over the states of the run, whatever is counted afterwards.

Items are counted apart from the plan's steps: a plan of one step and 20,000 items would else be "19,999 of 20,001
steps". Rejected: all instances in the view, 10 MB for 20,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from plansurvive.plans.definition.scopes import CATCH, FINALLY
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import Node
from plansurvive.plans.run import DONE, Run, Status, StepState
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.steps.row import status_word

STATUS_WORDS: Final = (*(status.value for status in Status), *DENIALS.values())
"""The words that `status_word` returns, in the order in which they are counted."""
PEOPLE: Final = frozenset(("approval", "answer"))
"""What a person is awaited for; it comes before other things that are awaited in the same item."""


class Census:
    """What is inside the containers of one run, as it stands now."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._awaited: dict[str, str] = {}
        self._nodes: Mapping[str, Node] = run.outline.nodes if run.opened else {}
        for name, state in run.steps.items() if run.opened else ():
            if state.awaiting:
                self._mark(name, state.awaiting)

    @property
    def has_any(self) -> bool:
        """Whether anything inside a step has begun."""
        return bool(self._nodes)

    def is_inside(self, step_id: str) -> bool:
        """Whether a step is inside another one."""
        node = self._nodes.get(step_id)
        return node is not None and node.parent is not None

    def top(self) -> Iterator[tuple[str, StepState]]:
        """The states of the steps that are not inside another one."""
        return ((name, state) for name, state in self._run.steps.items() if not self.is_inside(name))

    def children(self, step_id: str) -> list[str]:
        """The steps directly inside a step, as far as they have begun."""
        return self._nodes[step_id].children if step_id in self._nodes else []

    def word(self, step_id: str) -> str:
        """What a step counts as: its status, `denied`, or what is awaited in it."""
        state = self._run.steps[step_id]
        awaited = state.awaiting or self._awaited.get(step_id)
        return f"awaiting {awaited}" if awaited and state.status not in DONE else status_word(state)

    def inside(self, step_id: str) -> dict[str, Any] | None:
        """What is inside a step (an InsideView); None for a step that has nothing inside, or has not begun."""
        node, opened = self._nodes.get(step_id), self._run.opened.get(step_id)
        if node is None or opened is None:
            return None
        own = own_children(node)
        return inside_view(node, opened, len(own), Counter(self.word(name) for name in own))

    def share(self, step_id: str) -> float:
        """How much of a step is done, from 0 to 1."""
        state = self._run.steps[step_id]
        if state.status in DONE:
            return float(state.status is not Status.FAILED and not state.is_denied)
        inside = self.inside(step_id)
        return 0.0 if inside is None else share_of(InsideView.model_validate(inside))

    def walk(self, step_id: str) -> Iterator[str]:
        """Every step inside a step, each before those inside it."""
        stack = self.children(step_id)[::-1]
        while stack:
            name = stack.pop()
            yield name
            stack += reversed(self.children(name))

    def _mark(self, step_id: str, awaiting: str) -> None:
        """Note on everything around a step what is awaited in it."""
        at = self._nodes.get(step_id)
        while at is not None and at.parent is not None:
            known = self._awaited.get(at.parent)
            if known in PEOPLE or (known is not None and awaiting not in PEOPLE):
                return
            self._awaited[at.parent] = awaiting
            at = self._nodes[at.parent]


def share_of(inside: InsideView) -> float:
    """How much of what is inside a running step is done, from 0 to 1; of a repetition that is not known."""
    if inside.kind in ("repeat", "call") or not inside.total:
        return 0.0
    return sum(inside.counts.get(word, 0) for word in ("completed", "skipped")) / inside.total


def own_children(node: Node) -> list[str]:
    """The items, rounds or steps of a container, without its `catch` and `finally`."""
    extra = {inner_id(node.id, CATCH), inner_id(node.id, FINALLY)}
    if node.children and (node.children[-1] in extra):  # they are the last ones
        return [name for name in node.children if name not in extra]
    return [] if node.kind == "call" else node.children


def inside_view(node: Node, opened: Opened, began: int, counts: Mapping[str, int]) -> dict[str, Any]:
    """An InsideView, from the numbers of its items, rounds or steps by word."""
    step = node.step
    view: dict[str, Any] = {"kind": node.kind, "began": began, "counts": {k: n for k, n in counts.items() if n}}
    if node.kind == "each":
        view["total"] = len(opened.items or ())
    elif node.kind == "repeat" and step.repeat is not None:
        view["total"] = step.repeat.limit
    elif node.kind != "call":
        view["total"] = began
    if step.switch is not None and node.kind == "switch":
        view["alternatives"] = len(step.switch)
        view |= {} if opened.case is None else {"alternative": opened.case + 1}
    if opened.handler is not None and opened.body is not None:
        view["caught"] = opened.body.code or ""
    return view | ({"closing": True} if opened.closing else {})

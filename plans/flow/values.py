"""Values of blocks and loops, put together from those of the steps inside them when they are needed.

They are not stored: the value of a loop over 10,000 items would be in the run twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.plans.definition.scopes import CATCH
from plansurvive.plans.expressions.conditions import search
from plansurvive.plans.flow.batches.outcome import list_of
from plansurvive.plans.flow.batches.split import bounds, is_split
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.large_value import Composed, InnerValue
from plansurvive.plans.model import ForEach
from plansurvive.plans.step_state import Status, StepState

Location = tuple[str | int, ...]


class Composer:
    """Puts values together. `parts`: what is stored outside history, with its place, as found on the way."""

    def __init__(self, outline: Outline, opened: Mapping[str, Opened], steps: Mapping[str, StepState]) -> None:
        self._outline, self._opened, self._steps = outline, opened, steps
        self._parts: list[InnerValue] = []

    def composed(self, step_id: str) -> Composed:
        """The value of a step, with the large ones inside it."""
        self._parts = []
        return Composed(value=self.value(step_id), parts=self._parts)

    def whole(self, step_id: str) -> Composed:
        """The value of a container whose steps have ended, whatever its own status, with the large ones inside it."""
        self._parts = []
        return Composed(value=self.inside(step_id), parts=self._parts)

    def value(self, step_id: str, place: Location = ()) -> Any:
        """The value of a step; null if it has none."""
        state = self._steps.get(step_id)
        if state is None or state.status is not Status.COMPLETED or state.result is None:
            return None
        if state.result.large is not None:
            self._parts.append(InnerValue(place=list(place), large=state.result.large))
            return None
        return self.inside(step_id, place) if state.result.composed else state.result.value

    def inside(self, step_id: str, place: Location = ()) -> Any:
        """The value of a container whose steps have ended, whatever its own status."""
        node, opened = self._outline.nodes[step_id], self._opened.get(step_id)
        if opened is not None and opened.handler is not None:
            return self.inside(inner_id(step_id, CATCH), place)
        if node.kind == "each" and opened is not None and is_split(node.step.for_each):
            return self._batches(node, opened, place)
        if node.kind == "each":
            return [self.value(child, (*place, index)) for index, child in enumerate(node.children)]
        if node.kind == "repeat":
            rounds = [child for child in node.children if child.startswith(f"{node.id}#")]
            if node.step.repeat is not None and node.step.repeat.keep == "all":
                return [self.value(child, (*place, index)) for index, child in enumerate(rounds)]
            return self.value(rounds[-1], place) if rounds else None
        return self._block(node, place)

    def _batches(self, node: Node, opened: Opened, place: Location) -> list[Any]:
        rule, total = node.step.for_each or ForEach(items=[]), len(opened.items or [])
        found: list[Any] = []
        for number, child in enumerate(node.children):
            first, end = bounds(rule, number, total)
            found += list_of(self._steps[child], end - first, (*place, first), self._parts)
        return found + [None] * (total - len(found))

    def _block(self, node: Node, place: Location) -> dict[str, Any]:
        nodes, found = self._outline.nodes, dict[str, Any]()
        for child in node.children:
            if nodes[child].needs_siblings and self._steps[child].status is Status.COMPLETED:
                name = self._outline.inner_name(child)
                found[name] = self.value(child, (*place, name))
        return found


def output_of(value: Any, expression: str | None) -> Any:
    """The value of a block by its `output` expression. Raises BadExpression."""
    return value if expression is None else search(expression, value)

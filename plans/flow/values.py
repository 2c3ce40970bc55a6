"""Values of blocks and loops, put together from those of the steps inside them when they are needed.

They are not stored: the value of a loop over 10,000 items would be in the run twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plans.activity_io import LargeValue
from plans.definition.scopes import CATCH
from plans.expressions.conditions import search
from plans.flow.opened import Opened
from plans.flow.outline import Node, Outline
from plans.step_state import Status, StepState


class Composer:
    """Puts values together. `large`: what is stored outside history, by step id, as found on the way."""

    def __init__(self, outline: Outline, opened: Mapping[str, Opened], steps: Mapping[str, StepState]) -> None:
        self._outline, self._opened, self._steps = outline, opened, steps
        self.large: dict[str, LargeValue] = {}

    def value(self, step_id: str) -> Any:
        """The value of a step; null if it has none."""
        state = self._steps.get(step_id)
        if state is None or state.status is not Status.COMPLETED or state.result is None:
            return None
        if state.result.large is not None:
            self.large[step_id] = state.result.large
            return None
        return self.inside(step_id) if state.result.composed else state.result.value

    def inside(self, step_id: str) -> Any:
        """The value of a container whose steps have ended, whatever its own status."""
        node, opened = self._outline.nodes[step_id], self._opened.get(step_id)
        if opened is not None and opened.handler is not None:
            return self.inside(f"{step_id}.{CATCH}")
        if node.kind == "each":
            return [self.value(child) for child in node.children]
        if node.kind == "repeat":
            return self._rounds(node)
        return self._block(node)

    def _rounds(self, node: Node) -> Any:
        rounds = [child for child in node.children if child.startswith(f"{node.id}#")]
        if node.step.repeat is not None and node.step.repeat.keep == "all":
            return [self.value(child) for child in rounds]
        return self.value(rounds[-1]) if rounds else None

    def _block(self, node: Node) -> dict[str, Any]:
        own = {self._outline.inner_name(child): child for child in node.children if self._outline.nodes[child].names}
        return {
            name: self.value(child)
            for name, child in own.items()
            if self._outline.nodes[child].needs_siblings and self._steps[child].status is Status.COMPLETED
        }


def output_of(value: Any, expression: str | None) -> Any:
    """The value of a block by its `output` expression. Raises BadExpression."""
    return value if expression is None else search(expression, value)

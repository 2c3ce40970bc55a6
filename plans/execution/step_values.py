"""The values a step may use, as far as the workflow has them: small ones inline, big ones by reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plans.activity_io import LargeValue
from plans.definition.conditions import roots_of
from plans.definition.references import INPUTS, strings
from plans.errors import BadExpression
from plans.run import Run, Status


class StepValues:
    """Values by root: `inline` ones to fill in here, `large` ones to be filled in by the activity."""

    def __init__(self, run: Run, needs: Iterable[str]) -> None:
        self._run = run
        self.inline: dict[str, Any] = {INPUTS: run.inputs} if run.plan.inputs else {}
        self.large: dict[str, LargeValue] = {}
        self.add(needs)

    def add(self, names: Iterable[str]) -> None:
        """Take in the values of more steps; those without a value are left out."""
        for name in names:
            state = self._run.steps.get(name)
            if state is None or state.status is not Status.COMPLETED or state.result is None:
                continue
            if state.result.large is not None:
                self.large[name] = state.result.large
            else:
                self.inline[name] = state.result.value

    def loaded(self, condition: str) -> Mapping[str, Any]:
        """The inline values, for a condition. Raises BadExpression when one that it uses is kept elsewhere."""
        for name in roots_of(condition):
            if name in self.large:
                raise BadExpression(
                    f"the value of '{name}' has {self.large[name].bytes} bytes, too large for a condition;"
                    " add a step that takes out what the condition needs"
                )
        return self.inline


def size_of(args: dict[str, Any]) -> int:
    """About how many bytes arguments take: what counts is their texts."""
    return sum(len(text) for _, text in strings(args)) + 64

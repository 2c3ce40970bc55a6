"""The data of a Serverless Workflow at one task: `.`, `$context`, `$input`, the variables of loops and errors.

Known as expressions over the values of the plan's steps, so `set`, `export` and `output.as` need no step of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Listed, Made, Node, NotCarried, Path, Unknown
from plansurvive.apps.importers.common.expressions import jmespath_of as to_jmespath
from plansurvive.apps.importers.common.expressions import text_of as to_text
from plansurvive.apps.importers.common.expressions import value_of as to_value
from plansurvive.apps.importers.common.report import Location, Report
from plansurvive.apps.importers.serverless.jq import Data, embedded, evaluated

INPUTS = Path("inputs")
LOST = "an expression that was not imported"
"""Reported already, where it is written."""
ERROR = Made(
    {
        "type": Path("error", ("code",)),
        "title": Path("error", ("message",)),
        "detail": Path("error", ("message",)),
        "status": Unknown("the status of an error; a plan has its code"),
        "instance": Unknown("the instance of an error"),
    }
)
"""What `$error` is in a catch."""


@dataclass(frozen=True)
class State:
    """The data at one task."""

    report: Report
    dot: Node = INPUTS
    context: Node = INPUTS
    variables: Mapping[str, Node] = field(default_factory=dict)
    loose: bool = False
    """Expressions need no `${ }`."""

    def node(self, expression: Any, place: Location) -> Node:
        """The value of an expression, with or without `${ }`; Unknown, and reported, if it cannot be carried over."""
        if not isinstance(expression, str):
            return self.data(expression, place)
        inner = embedded(expression)
        try:
            return evaluated(expression if inner is None else inner, self._known())
        except NotCarried as error:
            self.lost(place, str(error))
            return Unknown(LOST)

    def data(self, value: Any, place: Location) -> Node:
        """A value with expressions in it, each in `${ }`."""
        if isinstance(value, dict):
            made = {str(name): self.data(each, (*place, name)) for name, each in value.items()}
            return Const(value) if all(isinstance(each, Const) for each in made.values()) else Made(made)
        if isinstance(value, list):
            items = tuple(self.data(each, (*place, number)) for number, each in enumerate(value))
            return Const(value) if all(isinstance(each, Const) for each in items) else Listed(items)
        if not isinstance(value, str):
            return Const(value)
        if embedded(value) is not None or (self.loose and value.startswith((".", "$"))):
            return self.node(value, place)
        if value.startswith((".", "$context.", "$input.")) and value[1:2].isalpha():
            self.report.note(place, f"{value[:100]!r} is a text here, as it is without ${{ }}")
        return Const(value)

    def value(self, value: Any, place: Location) -> Any:
        """A value for the arguments of a step; what cannot be carried over stays as it is written, and is reported."""
        try:
            return to_value(self.data(value, place))
        except NotCarried as error:
            self.lost(place, str(error))
            return to_value(Const(value))

    def text(self, value: Any, place: Location) -> str:
        """As `value`, for a text."""
        try:
            return to_text(self.data(value, place))
        except NotCarried as error:
            self.lost(place, str(error))
            return to_text(Const(value))

    def condition(self, expression: Any, place: Location) -> str:
        """An expression as a condition of a plan; empty, and reported, if it cannot be carried over."""
        try:
            return to_jmespath(self.node(expression, place))
        except NotCarried as error:
            self.lost(place, str(error))
            return ""

    def after(self, output: Node, task: Mapping[str, Any], place: Location) -> State:
        """The data after a task: its output, as `output.as` makes it, and what it exports."""
        state = replace(self, dot=output, variables={**self.variables, "input": self.dot})
        made = task.get("output")
        if isinstance(made, dict) and "as" in made:
            state = replace(state, dot=state.node(made["as"], (*place, "output", "as")))
        exported = task.get("export")
        if isinstance(exported, dict) and "as" in exported:
            known = replace(state, variables={**state.variables, "output": state.dot})
            state = replace(state, context=known.node(exported["as"], (*place, "export", "as")))
        return replace(state, variables=self.variables)

    def within(self, task: Mapping[str, Any], place: Location) -> State:
        """The data inside a task: its input, as `input.from` makes it."""
        given = task.get("input")
        if isinstance(given, dict) and "from" in given:
            return replace(self, dot=self.node(given["from"], (*place, "input", "from")))
        return self

    def lost(self, place: Location, why: str) -> None:
        """Report an expression that was not carried over."""
        if why != LOST:
            self.report.loss(place, why, "write it in JMESPath, or compute it in a step")

    def _known(self) -> Data:
        fixed = {"context": self.context, "input": self.dot, "workflow": Made({"input": Path("inputs")})}
        return Data(self.dot, {**fixed, **self.variables})

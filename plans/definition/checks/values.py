"""What is known of values before a plan runs: from the tools, the schemas in their arguments, and the constructs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from plansurvive.plans.definition.checks.scope import Scope
from plansurvive.plans.definition.checks.types import LIST_OF, Schema, Walk
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.scopes import ERROR, INDEX, KEY, ROUND, STATUS, bodies
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.items import list_expression
from plansurvive.plans.expressions.references import INPUTS, find
from plansurvive.plans.model import Plan, Step, ToolSpec

_VARIABLES: Mapping[str, Schema] = {
    INDEX: {"type": "integer"},
    KEY: {"type": "string"},
    ROUND: {"type": "integer"},
    STATUS: {"type": "string"},
    ERROR: {
        "type": "object",
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        "additionalProperties": False,
    },
}
MAX_LEVELS = 20
"""Values of blocks in blocks that are followed."""


class Values:
    """The schemas of the values in one plan."""

    def __init__(self, plan: Plan, tools: Mapping[str, ToolSpec], untyped: Container[str], language: Language) -> None:
        self._tools, self._language = tools, language
        fields = {name: {} if name in untyped else {"type": each.type} for name, each in plan.inputs.items()}
        self.inputs: Schema = {"type": "object", "properties": fields, "additionalProperties": False}

    def of_step(self, step: Step, level: int = 0) -> Schema | None:
        """The schema of a step's value."""
        if step.catch:
            return None
        found = self.of_round(step, level)
        if step.repeat is not None and step.repeat.keep == "all":
            found = _list(found, "rounds")
        return found if step.for_each is None else _list(found, "items")

    def of_round(self, step: Step, level: int = 0) -> Schema | None:
        """The schema of the value of one item and round."""
        if level > MAX_LEVELS:
            return None
        if not step.is_block:
            return self._of_call(step)
        whole = self.of_block(step, level)
        if step.output is None:
            return whole
        return self.of_expression(step.output, lambda name: whole["properties"].get(name), whole)

    def of_block(self, step: Step, level: int = 0) -> Schema:
        """The schema of the object of a block's values."""
        inner = [each for body in bodies(step) if not body.part for each in body.steps]
        fields = {each.id: self.of_step(each, level + 1) for each in inner}
        return {"type": "object", "properties": fields, "additionalProperties": False}

    def of_name(self, name: str, scope: Scope, own: Step) -> Schema | None:
        """The schema of what a name stands for in a step's own fields."""
        if own.for_each is not None and name in (own.for_each.as_, INDEX, KEY):
            return _VARIABLES.get(name) if name != own.for_each.as_ else self._item(own, scope)
        if own.repeat is not None and name == ROUND:
            return _VARIABLES[ROUND]
        at: Scope | None = scope
        while at is not None:
            if name in at.steps or name in at.beside:
                found = at.step(name)
                return self.of_step(found) if found is not None else None
            if name in at.variables:
                return self._variable(name, at)
            at = at.around
        return self.inputs if name == INPUTS else None

    def of_expression(self, text: str, root: Any, here: Schema | None = None) -> Schema | None:
        """The schema of what an expression gives; None if it does not parse."""
        try:
            return Walk(root, lambda *_: "").of(compiled(text).parsed, here)
        except BadExpression:
            return None

    def of_path(self, path: str, here: Schema) -> Schema | None:
        """The schema of what the path of a reference gives, in a value; None if it does not parse."""
        try:
            return Walk(lambda _: None, lambda *_: "").of(compiled(path).parsed, here, is_top=False) if path else here
        except BadExpression:
            return None

    def _variable(self, name: str, scope: Scope) -> Schema | None:
        owner, around = scope.owner, scope.around
        if owner is None or around is None:
            return _VARIABLES.get(name)
        if owner.for_each is not None and name == owner.for_each.as_:
            return self._item(owner, around)
        return _VARIABLES.get(name)

    def _item(self, step: Step, scope: Scope) -> Schema | None:
        items = step.for_each.items if step.for_each is not None else None
        if not isinstance(items, str):
            return None
        outer = step.model_copy(update={"for_each": None, "repeat": None})
        found = self.of_expression(list_expression(items), lambda name: self.of_name(name, scope, outer))
        inner = found.get("items") if found is not None else None
        return inner if isinstance(inner, Mapping) else None

    def _of_call(self, step: Step) -> Schema | None:
        for name in self._language.tool(step.tool).schema_args:
            if (given := step.args.get(name)) is not None:
                return given if isinstance(given, Mapping) and not find(given) else None
        spec = self._tools.get(step.tool)
        return spec.value_schema if spec is not None else None


def _list(items: Schema | None, kind: str) -> Schema:
    found = {"type": "array", LIST_OF: kind}
    return found | {"items": items} if items is not None else found

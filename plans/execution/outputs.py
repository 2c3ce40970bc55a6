"""The value of a plan: its `outputs`, expressions over the values of its steps and its inputs; without, values by step.

Evaluated once, at the plan's end. Steps that did not complete have no value: in an expression they are null. Where a
value is stored outside history, an activity evaluates with the same function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import roots_of, search
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.flow.batches.outcome import ITEMS
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.large_value import Composed, LargeValue
from plansurvive.plans.model import Value
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepValues

INLINE_CHARACTERS = 16_000
"""Longest value, as JSON text, that the workflow keeps itself; longer ones go through an activity into storage."""
BAD_OUTPUT = "BAD_OUTPUT"
"""Code of an output that cannot be evaluated."""


class OutputsRequest(Value):
    """Input of `plan_outputs`: the values of the steps that the value of a plan is made of."""

    outputs: dict[str, str] = Field(description="Expressions by name; empty: the values by step.")
    values: dict[str, Any] = Field(default_factory=dict, description="Values by step, and `inputs`.")
    large: dict[str, LargeValue] = Field(default_factory=dict, description="Values outside history, by step.")
    composed: dict[str, Composed] = Field(default_factory=dict, description="Values of loops that hold such values.")


def wanted(run: Run, *, is_child: bool) -> OutputsRequest | None:
    """What the value of the plan is made of; None if it has none: nobody asked for values by step."""
    if not run.plan.outputs and not is_child:
        return None
    names = [step.id for step in run.plan.steps]
    if run.plan.outputs:
        used = {root for expression in run.plan.outputs.values() for root in _roots(expression)}
        names = names if "@" in used else [name for name in names if name in used]
    found = StepValues(run, names)
    return OutputsRequest(outputs=run.plan.outputs, values=found.inline, large=found.large, composed=found.composed)


def wanted_of_batch(run: Run) -> OutputsRequest | None:
    """What the values of a batch are made of, whether or not some of its items failed; None if none has begun."""
    batch = run.batch
    if batch is None or batch.step_id not in run.opened:
        return None
    found = Composer(run.outline, run.opened, run.steps).whole(batch.step_id)
    values = {} if found.parts else {ITEMS: found.value}
    return OutputsRequest(outputs={}, values=values, composed={ITEMS: found} if found.parts else {})


def is_small(request: OutputsRequest) -> bool:
    """Whether the workflow itself may evaluate it: every value is there, and they are short."""
    return not (request.large or request.composed) and len(json.dumps(request.values, default=str)) <= INLINE_CHARACTERS


def evaluated(request: OutputsRequest, values: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """The value of the plan. `values`: those of the request, the stored ones included. Raises BadExpression."""
    if not request.outputs:
        return {name: value for name, value in values.items() if name != INPUTS}
    found: dict[str, Any] = {}
    for name, expression in request.outputs.items():
        try:
            found[name] = search(expression, dict(values), budget)
            budget.size(found[name])
        except BadExpression as error:
            raise BadExpression(f"output '{name}': {error.message}", BAD_OUTPUT) from None
    return found


def _roots(expression: str) -> list[str]:
    try:
        return roots_of(expression)
    except BadExpression:
        return []

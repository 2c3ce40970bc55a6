"""The value of a plan: its `outputs`, expressions over the values of its steps and its inputs; without, values by step.

Evaluated once, at the plan's end. Steps that did not complete have no value: in an expression they are null. Where a
value is stored outside history, an activity evaluates with the same function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plansurvive.plans.children.state import OutputsRequest
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import roots_of, search
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.run import Run
from plansurvive.plans.step_call import StepValues

INLINE_CHARACTERS = 16_000
"""Longest value, as JSON text, that the workflow keeps itself; longer ones go through an activity into storage."""
BAD_OUTPUT = "BAD_OUTPUT"
"""Code of an output that cannot be evaluated."""


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

"""The child plan that a step would run, as far as it is known before: its Run, and what it would give back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from plansurvive.plans.children import of_items, outputs
from plansurvive.plans.children.orders import Source, child_id, inline_data, inputs_of, source_of
from plansurvive.plans.children.results import failure_of
from plansurvive.plans.children.starting import child_run, place_problems
from plansurvive.plans.children.state import ChildPlan, LoadedPlan
from plansurvive.plans.definition.validation import input_values
from plansurvive.plans.errors import BadExpression, InvalidPlan
from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.feature import RuleSet
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run


class Foreseen(NamedTuple):
    """How a child plan would end. `code`: it would fail its step; empty: it would not."""

    code: str = ""
    error: str = ""
    value: Any = None
    is_known: bool = False


def child_of(
    parent: Run, step: Step, args: Mapping[str, Any], load: Callable[[Step, Source], LoadedPlan], now: datetime,
    rules: RuleSet,
) -> Run:  # fmt: skip
    """The Run that the child plan of a step would start with, checked by this machine's tools.

    Raises PlanError: it cannot be loaded, is not valid, or is nested too deep.
    """
    if parent.outline.loop_of(step.id) is not None:
        run = of_items.batch_run(parent, step, None, child_id(parent.plan.id or "", step.id, 0), now, rules)
    else:
        source, inputs, state = source_of(args), inputs_of(args), parent.steps[step.id]
        state.child = ChildPlan(kind=source.kind)
        data = inline_data(source.value, inputs) if source.kind == "inline" else None
        if data is None:
            loaded = load(step, source)
            state.child = ChildPlan(kind=source.kind, source=loaded.source[:1_000], sha256=loaded.sha256)
            data = loaded.data
        name = child_id(parent.plan.id or "", step.id, state.calls, args.get("id"))
        run = child_run(parent, step, data, inputs, name)
    run.language = parent.language
    run.options = run.options.model_copy(update={"parts": rules.parts_for_child(parent, step, run.plan)})
    place = run.options.workspace or parent.workspace_of(step)
    run.facts = parent.facts.model_copy(update={"workspace": place})
    run.inputs = input_values(run.plan, run.options.inputs)[0]
    if wrong := place_problems(run, run.facts):
        raise InvalidPlan(wrong)
    return run


def foreseen(run: Run, unknown: Collection[str]) -> Foreseen:
    """How a child plan ends whose steps have all been looked at. `unknown`: the steps whose value is not known."""
    code, error = failure_of(run)
    if code:
        return Foreseen(code, error)
    request = outputs.wanted(run, is_child=True)
    if run.batch is not None or request is None or not outputs.is_small(request):
        return Foreseen()
    try:
        used = {root for each in run.plan.outputs.values() for root in roots_of(each)} if run.plan.outputs else {"@"}
        hidden = set(run.steps) if "@" in used else used
        if hidden & set(unknown):
            return Foreseen()
        return Foreseen(value=outputs.evaluated(request, request.values, Budget()), is_known=True)
    except BadExpression as error:
        return Foreseen(error.code, error.message)

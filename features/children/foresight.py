"""Which plan a step would run, for a forecast, and how it would end: read by the rules of the worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from plansurvive.client.feature import library
from plansurvive.features.children.batches import batch_run
from plansurvive.features.children.child_run import child_run, place_problems
from plansurvive.features.children.load_plan import PlanLoader
from plansurvive.features.children.model import LoadedPlan, LoadRequest
from plansurvive.features.children.orders import Source, inline_data, inputs_of, source_of
from plansurvive.features.children.results import failure_of
from plansurvive.features.forecast.model import Below, Foreseen
from plansurvive.features.forecast.seam import Foresight, Site
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.child_state import ChildPlan
from plansurvive.plans.definition.checks.validation import input_values
from plansurvive.plans.errors import BadExpression, InvalidPlan
from plansurvive.plans.execution import outputs
from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet

Load = Callable[[str, Source], LoadedPlan]
"""Given a workspace and a source, the content of a plan."""


@dataclass(frozen=True)
class ForeseenPlans(Foresight):
    """The plan files and templates of this machine."""

    loader: PlanLoader

    def below(self, run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet) -> Below | None:
        """The child plan of a step, or the batch that it is."""

        def load(workspace: str, source: Source) -> LoadedPlan:
            return self.loader.loaded(LoadRequest(workspace=workspace, **{source.kind: source.value}))

        return below(run, step, args, now, rules, load)


def foresight(site: Site) -> Foresight:
    """What would come of steps there."""
    return ForeseenPlans(PlanLoader(site.settings.state_dir, library=library()))


def below(run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet, load: Load) -> Below | None:
    """See `Foresight.below`. `load`: the content of a plan file or a template, in a workspace. Raises PlanError."""
    if step.tool != PLAN and run.outline.loop_of(step.id) is None:
        return None
    child = child_of(run, step, args, load, now, rules)
    return Below(child, partial(foreseen, child))


def child_of(
    parent: Run, step: Step, args: Mapping[str, Any], load: Load, now: datetime,
    rules: RuleSet,
) -> Run:  # fmt: skip
    """The Run that the child plan of a step would start with, checked by this machine's tools.

    Raises PlanError: it cannot be loaded, is not valid, or is nested too deep.
    """
    if parent.outline.loop_of(step.id) is not None:
        run = batch_run(parent, step, None, child_id(parent.plan.id or "", step.id, 0), now, rules)
    else:
        source, inputs, state = source_of(args), inputs_of(args), parent.steps[step.id]
        state.child = ChildPlan(kind=source.kind)
        data = inline_data(source.value, inputs) if source.kind == "inline" else None
        if data is None:
            loaded = load(parent.workspace_of(step), source)
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

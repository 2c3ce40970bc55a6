"""Checks the steps of a plan that run a template: whether there is such a template, and whether its inputs fit.

Pure: whoever reads files passes `find` in (`runtime.templates.find.find_template`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plans.definition.near_names import Hints
from plans.definition.validation import has_type
from plans.errors import PlanError
from plans.expressions.references import find as references_in
from plans.model import Input, Plan, Problem, Step
from plans.model.template import Template

TOOL = "plan"
"""The tool whose `template` and `inputs` are checked."""


def template_problems(plan: Plan, find: Callable[[str], Template]) -> list[Problem]:
    """The problems of all calls of templates in a plan. `find` raises PlanError for a template that cannot be used."""
    found: dict[str, Template | PlanError] = {}
    hints = Hints()
    return [problem for step in every_step(plan) for problem in _call_problems(step, find, found, hints)]


def every_step(plan: Plan) -> Iterator[Step]:
    """All steps, those inside others included."""
    waiting = [*reversed(plan.finally_ or []), *reversed(plan.steps)]
    while waiting:
        step = waiting.pop()
        yield step
        bodies = [step.steps or [], *(case.steps for case in step.switch or [])]
        bodies += [*(handler.steps for handler in step.catch or []), step.finally_ or []]
        bodies += [step.undo.steps or []] if step.undo else []
        waiting += [each for body in reversed(bodies) for each in reversed(body)]


def waived(plan: Plan) -> list[str]:
    """Ids of the steps whose approval the plan itself waives: by `requiresApproval: false`, or when it times out."""
    by_default = plan.defaults.approval is not None and plan.defaults.approval.on_timeout == "approve"
    found = []
    for step in every_step(plan):
        times_out = step.approval.on_timeout == "approve" if step.approval else by_default
        if step.requires_approval is False or times_out:
            found.append(step.id)
    return list(dict.fromkeys(found))


def _call_problems(
    step: Step, find: Callable[[str], Template], found: dict[str, Template | PlanError], hints: Hints
) -> Iterator[Problem]:
    name = step.args.get("template")
    if step.tool != TOOL or not isinstance(name, str) or references_in(name):
        return
    if name not in found:
        try:
            found[name] = find(name)
        except PlanError as error:
            found[name] = error
    template = found[name]
    if isinstance(template, PlanError):
        yield Problem(code=template.code, step_id=step.id, field="args.template", message=template.message)
        return
    given = step.args.get("inputs")
    if given is None or isinstance(given, Mapping):
        yield from _input_problems(step, template, given or {}, hints)


def _input_problems(step: Step, template: Template, given: Mapping[str, Any], hints: Hints) -> Iterator[Problem]:
    declared = template.inputs
    for name, value in given.items():
        field = f"args.inputs.{name}"[:300]
        if name not in declared:
            text = f"{template.label} has no input '{name}'{hints.question(name, declared)}"
            yield Problem(code="UNKNOWN_INPUT", step_id=step.id, field=field, message=text)
        elif not _may_fit(value, declared[name]):
            text = f"the input '{name}' of {template.label} is of type {declared[name].type}; pass one that is"
            yield Problem(code="BAD_INPUT", step_id=step.id, field=field, message=text)
    for name, each in declared.items():
        if each.default is None and given.get(name) is None:
            text = f"{template.label} needs the input '{name}'; add it to args.inputs"
            yield Problem(code="MISSING_INPUT", step_id=step.id, field="args.inputs", message=text)


def _may_fit(value: Any, declared: Input) -> bool:
    """Whether a value is of the declared type, or is a reference, whose value is not known yet."""
    if value is None:
        return True
    if isinstance(value, str) and any(reference.whole for reference in references_in(value)):
        return True
    return has_type(value, declared)

"""Checks the steps of a plan that run a template: whether there is such a template, and whether its inputs fit.

Pure: who reads files passes `find` in (`runtime.plan_files.library`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plansurvive.plans.definition.checks.validation import calls_to, has_type
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import CallOf
from plansurvive.plans.errors import PlanError
from plansurvive.plans.expressions.references import find as references_in
from plansurvive.plans.model import Input, Plan, Problem
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.model.template import Template


def template_problems(plan: Plan, find: Callable[[str], Template]) -> list[Problem]:
    """The problems of all calls of templates in a plan. `find` raises PlanError for a template that cannot be used."""
    found: dict[str, Template | PlanError] = {}
    hints = Hints()
    return [problem for call in calls_to(plan, PLAN) for problem in _call_problems(call, find, found, hints)]


def _call_problems(
    call: CallOf, find: Callable[[str], Template], found: dict[str, Template | PlanError], hints: Hints
) -> Iterator[Problem]:
    name = call.args.get("template")
    if not isinstance(name, str) or references_in(name):
        return
    if name not in found:
        try:
            found[name] = find(name)
        except PlanError as error:
            found[name] = error
    template = found[name]
    if isinstance(template, PlanError):
        yield call.problem(template.code, "args.template", template.message)
        return
    given = call.args.get("inputs")
    if given is None or isinstance(given, Mapping):
        yield from _input_problems(call, template, given or {}, hints)


def _input_problems(call: CallOf, template: Template, given: Mapping[str, Any], hints: Hints) -> Iterator[Problem]:
    declared = template.inputs
    for name, value in given.items():
        field = f"args.inputs.{name}"[:300]
        if name not in declared:
            text = f"{template.label} has no input '{name}'{hints.question(name, declared)}"
            yield call.problem("UNKNOWN_INPUT", field, text)
        elif not _may_fit(value, declared[name]):
            text = f"the input '{name}' of {template.label} is of type {declared[name].type}; pass one that is"
            yield call.problem("BAD_INPUT", field, text)
    for name, each in declared.items():
        if each.default is None and given.get(name) is None:
            text = f"{template.label} needs the input '{name}'; add it to args.inputs"
            yield call.problem("MISSING_INPUT", "args.inputs", text)


def _may_fit(value: Any, declared: Input) -> bool:
    """Whether a value is of the declared type, or is a reference, whose value is not known yet."""
    if value is None:
        return True
    if isinstance(value, str) and any(reference.whole for reference in references_in(value)):
        return True
    return has_type(value, declared)

"""Problems of a plan step that are known before it runs: of its inline steps, or of the content it names.

The child is validated as a plan of its own; each of its problems is reported at the parent's step, with its place in
the child in front of its message. Inputs are compared with those that the child declares.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from plansurvive.features.children.orders import SOURCES, inline_data, source_problem
from plansurvive.plans.definition.checks.validation import input_values, problems
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.definition.scopes import CallOf
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import Plan, Problem, Step, ToolSpec
from plansurvive.plans.model.opaque import PLAN, STEPS

MAX_FIELD = 300


def inline_problems(call: CallOf, tools: Mapping[str, ToolSpec], language: Language) -> Iterator[Problem]:
    """Problems of the source of a plan step, and of its inline steps."""
    if call.tool != PLAN:
        return
    given, inputs = [name for name in SOURCES if call.args.get(name) is not None], call.args.get("inputs")
    if len(given) != 1:
        yield call.problem("INVALID_ARGS", "args", f"Invalid args for {PLAN}: {source_problem(given)}")
    elif isinstance(call.args.get(STEPS), list):
        data = inline_data(call.args[STEPS], inputs if isinstance(inputs, dict) else {})
        unknown = [name for name, value in inputs.items() if find(value)] if isinstance(inputs, dict) else []
        found = content_problems(data, tools, language, unknown)[1]
        yield from nested(call.path, f"{call.start}args.{STEPS}", found)


def content_problems(
    data: Any, tools: Mapping[str, ToolSpec], language: Language, untyped: Container[str] = ()
) -> tuple[Plan | None, list[Problem]]:
    """The plan that the content of a child describes, None if it is none, and all its problems.

    `untyped`: inputs whose values are known only when it starts.
    """
    plan = read_plan(data)
    if isinstance(plan, list):
        return None, plan
    elsewhere = {step.id for step in plan.steps if step.queue}  # its workers may have other tools
    return plan, problems(plan, tools, elsewhere, untyped, language)


def input_problems(step: Step, plan: Plan) -> Iterator[Problem]:
    """Problems of the inputs that a step gives a plan. What a reference gives is not known yet."""
    inputs = step.args.get("inputs")
    given = {name: value for name, value in inputs.items() if value is not None} if isinstance(inputs, dict) else {}
    unknown = {name for name, value in given.items() if find(value)}
    if isinstance(inputs, str):
        return
    for problem in input_values(plan, given, in_file=True)[1]:
        name = (problem.field or "").removeprefix("inputs.")
        if problem.code == "BAD_INPUT" and name in unknown:
            continue
        yield problem.model_copy(update={"step_id": step.id, "field": f"args.inputs.{name}"[:MAX_FIELD]})


def nested(step_id: str, where: str, found: list[Problem]) -> Iterator[Problem]:
    """The problems of a child plan as problems of its step; `where` the child is written."""
    for problem in found:
        place = ".".join(part for part in (where, problem.step_id, problem.field) if part)
        yield problem.model_copy(update={"step_id": step_id, "field": place[:MAX_FIELD]})

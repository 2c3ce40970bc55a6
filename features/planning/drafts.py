"""Merges a plan written by the LLM into a run: steps that have begun and fields set by people stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.features.planning.regeneration import fitted
from plansurvive.plans.definition.checks.validation import calls_of, condition_problems, errors, problems
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.llm.answers import PlanAnswer
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.model import Plan, Problem, ToolSpec, Value
from plansurvive.plans.run import Run


class Draft(Value):
    """The merged plan and its validation problems."""

    plan: Plan
    problems: list[Problem]

    @property
    def can_be_repaired(self) -> bool:
        """Whether people can load and edit it: conditions parse and step ids are unique."""
        has_duplicate = any(problem.code == "PLAN_DUPLICATE_ID" for problem in self.problems)
        return not has_duplicate and not condition_problems(self.plan)


def draft_of(run: Run, base: Plan, answer: PlanAnswer) -> Draft | AnswerProblem:
    """Put the answer's steps into `base`; an AnswerProblem if they change a step that has begun."""
    steps, wrong = fitted(run, answer.plan.steps)
    if wrong:
        return AnswerProblem.of(wrong)
    changed = {
        "steps": steps,
        "title": answer.plan.title or base.title,
        "estimated_duration": answer.plan.estimated_duration,
    }
    plan = base.model_copy(update=changed)
    return Draft.model_construct(
        plan=plan, problems=errors(problems(plan, _for_models(run, base), language=run.language))
    )


def _for_models(run: Run, base: Plan) -> Mapping[str, ToolSpec]:
    """The tools as a model may use them that revises a plan."""
    if not run.language.words:
        return run.facts.tools
    before: dict[str, list[Mapping[str, Any]]] = {}
    for _, step in walk(base):
        for call in calls_of(step):
            before.setdefault(call.tool, []).append(call.args)
    return {name: run.language.for_models(spec, before.get(name, [])) for name, spec in run.facts.tools.items()}

"""Merges a plan written by the LLM into a run: steps that have begun and fields set by people stay unchanged."""

from __future__ import annotations

from plansurvive.plans.definition.validation import condition_problems, errors, problems
from plansurvive.plans.execution.regeneration import fitted
from plansurvive.plans.llm.answers import PlanAnswer
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.model import Plan, Problem, Value
from plansurvive.plans.run import Run
from plansurvive.plans.secrets.models import tools_for_models


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
    tools = tools_for_models(run.facts.tools, base)
    return Draft.model_construct(plan=plan, problems=errors(problems(plan, tools)))

"""Decides what a plan that the LLM wrote is worth in this run: what has begun stays, what people set stays."""

from __future__ import annotations

from plans.definition.validation import condition_problems, errors, problems
from plans.execution.regeneration import fitted
from plans.llm.answers import PlanAnswer
from plans.llm.json_extraction import AnswerProblem
from plans.model import Plan, Problem, Value
from plans.run import Run


class Draft(Value):
    """A plan as it would stand, and all that is wrong with it."""

    plan: Plan
    problems: list[Problem]

    @property
    def can_be_repaired(self) -> bool:
        """Whether people can load and edit it: its conditions can be read and its ids are distinct."""
        is_double = any(problem.code == "PLAN_DUPLICATE_ID" for problem in self.problems)
        return not is_double and not condition_problems(self.plan)


def draft_of(run: Run, base: Plan, answer: PlanAnswer) -> Draft | AnswerProblem:
    """The answer's steps on `base`, which keeps all other fields; a problem when it changes a step that has begun."""
    steps, wrong = fitted(run, answer.plan.steps)
    if wrong:
        return AnswerProblem.of(wrong)
    changed = {
        "steps": steps,
        "title": answer.plan.title or base.title,
        "estimated_duration": answer.plan.estimated_duration,
    }
    plan = base.model_copy(update=changed)
    return Draft.model_construct(plan=plan, problems=errors(problems(plan, run.facts.tools)))

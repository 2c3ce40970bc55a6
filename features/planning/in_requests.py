"""The answers that plans and recoveries ask for; their messages are composed in the workflow."""

from __future__ import annotations

from plansurvive.plans.llm.answers import MAX_STEPS, AnswerKind, parse_plan_answer, parse_recovery
from plansurvive.plans.llm.schemas import plan_schema, recovery_schema

ANSWERS = (
    AnswerKind(
        "plan",
        lambda tools, _: plan_schema(tools),
        lambda text, of: parse_plan_answer(text, of.specs, MAX_STEPS),
        is_sent_back=True,
    ),
    AnswerKind(
        "recovery",
        lambda tools, of: recovery_schema(tools, of.specs.get(of.failed)),
        lambda text, of: parse_recovery(text, of.specs.get(of.failed), of.specs),
        is_sent_back=True,
    ),
)
COMPOSER = None

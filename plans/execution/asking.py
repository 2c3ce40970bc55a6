"""The question of a step as it stands in a run: what it asks, as far as that is known, and what is asked of whom.

`plans.definition.questions` says what a question is and which values answer it; `features.waiting` takes answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plansurvive.plans.definition import questions
from plansurvive.plans.definition.questions import ASK
from plansurvive.plans.errors import Refused
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepCall, digest_of, upcoming


def digest_of_question(args: Mapping[str, Any]) -> str:
    """What tells a question from others: its arguments, wherever it is asked."""
    return digest_of(StepCall(ASK, dict(args), None, "", {}))


def question_of(run: Run, step: Step) -> dict[str, Any] | None:
    """The question as it is asked, or as far as known before that: None if a part of it is not, or nothing is checked.

    Before a worker has checked the plan, its schemas have not been checked either.
    """
    state = run.steps[step.id]
    if state.wants_answer and state.asked is not None:
        return state.asked
    call = upcoming(run, step)
    if not run.facts.tools or not call.is_whole or questions.problem(call.call.args):
        return None
    return call.call.args


def void_answer(
    run: Run, step_id: str, now: datetime, why: str = "was to another question; it asks again", code: str | None = None
) -> None:
    """Discard the answer of a step, if it has one."""
    state = run.steps.get(step_id)
    if state is not None and state.answer is not None:
        state.answer = None
        run.note(LogKind.VOID, f"the answer to step '{step_id}' {why}", now, step_id, code=code)


def refuse_approval(run: Run, step: Step, is_approval_stated: bool | None) -> None:
    """Raise Refused if an approval or denial concerns a question that only wants an answer."""
    is_question = run.language.tool(step.tool).is_question
    if is_question and (run.steps[step.id].wants_answer or not is_approval_stated):
        text = f"step '{step.id}' asks a question, which is answered, not approved"
        raise Refused(f"{text}: plan answer {run.plan.id} {step.id} VALUE", "IS_A_QUESTION")

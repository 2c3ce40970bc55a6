"""The question of a step as it stands in a run: what it asks, as far as that is known, and what is asked of whom.

`plans.definition.questions` says what a question is and which values answer it; `features.waiting` takes answers. A
step of the tool `ask` is one. One of another tool may ask on its way (`note_question`, `use_answer`), as a merge does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plansurvive.plans.definition import questions
from plansurvive.plans.definition.questions import ASK
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.tool_history import keep_asked
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
    if not run.language.tool(step.tool).is_question:
        return None
    call = upcoming(run, step)
    if not run.facts.tools or not call.is_whole or questions.problem(call.call.args):
        return None
    return call.call.args


def note_question(run: Run, step_id: str, args: dict[str, Any]) -> None:
    """Note the question that a step has just begun to ask. One that asked another before is marked as changed."""
    state, digest = run.steps[step_id], digest_of_question(args)
    before = [state.asks[seq] for seq in state.asks if state.waits.get(seq) == "answer"]
    if before and before[-1] != digest:
        run.edited[step_id] = approvals.CALL
    keep_asked(state, "question" if before else "")
    state.asked = args
    state.asks[state.changes[-1].seq] = digest


def use_answer(run: Run, step_id: str) -> Any:
    """The value of a step's answer, which from now on is used up."""
    state = run.steps[step_id]
    if state.answer is None:
        raise ValueError(f"step '{step_id}' has no answer")
    value, state.answer = state.answer.value, state.answer.model_copy(update={"value": None, "used": True})
    return value


def void_answer(
    run: Run, step_id: str, now: datetime, why: str = "was to another question; it asks again", code: str | None = None
) -> None:
    """Discard the answer of a step, if it has one."""
    state = run.steps.get(step_id)
    if state is not None and state.answer is not None:
        state.answer = None
        run.note(LogKind.VOID, f"the answer to step '{step_id}' {why}", now, step_id, code=code)

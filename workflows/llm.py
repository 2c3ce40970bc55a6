"""Questions to the LLM from a workflow: within the budget, counted, corrected a bounded number of times.

Every call has its own number and key; what it took is added to the run's ledger, also when it failed. An answer that
cannot be used is sent back with all that is wrong with it, CORRECTIONS times at most; then `Unanswered` is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from plans import budget
    from plans.agents.llm_request import ChatMessage, LlmAnswer, LlmRequest
    from plans.budget import Budget, Usage
    from plans.errors import Unanswered
    from plans.llm.json_extraction import AnswerProblem
    from plans.llm.planning_prompts import correction_prompt
    from plans.llm.prompt_parts import Prompt
    from plans.log import LogKind
    from plans.run import Run
    from workflows import policies

CORRECTIONS = 3
MENDABLE = frozenset(("LLM_TRUNCATED", "LLM_BAD_ANSWER"))
"""Failures of a call that the model itself can mend by answering otherwise."""
Found = TypeVar("Found")


class Question(NamedTuple):
    """What is asked, and what for."""

    purpose: str
    prompt: Prompt
    schema_name: str
    schema: dict[str, Any]
    about: str
    step_id: str = ""


async def answered(run: Run, question: Question, read: Callable[[str], Found | AnswerProblem]) -> Found:
    """What `read` makes of the first answer it accepts. Raises Unanswered."""
    prompt = question.prompt
    problem = AnswerProblem(message="")
    text = ""
    for left in range(CORRECTIONS, -1, -1):
        text, problem_of_call = await _text(run, question, prompt, CORRECTIONS - left)
        found = problem_of_call or read(text)
        if not isinstance(found, AnswerProblem):
            return found
        problem = found
        told = problem.problems or [problem.message]
        refused = f"{question.about}: answer {CORRECTIONS - left + 1} was not accepted: {told[0]}"[:500]
        run.note(LogKind.LLM, refused, _now(), code=problem.code, subject=question.about)
        prompt = correction_prompt(question.prompt, text, told, left)
    raise Unanswered(
        f"the LLM gave no usable answer in {CORRECTIONS + 1} attempts: {problem.message}"[:4_000],
        problems=problem.problems or [problem.message],
        text=text,
    )


async def _text(run: Run, question: Question, prompt: Prompt, tries: int) -> tuple[str, AnswerProblem | None]:
    """The text of one answer, and what is wrong with it before it is read."""
    try:
        answer = await _ask(run, question, prompt, tries)
    except Unanswered as error:
        if error.code not in MENDABLE:
            raise
        return error.text, AnswerProblem(message=error.message, problems=[error.message])
    return answer.text, AnswerProblem(message=answer.problem, problems=[answer.problem]) if answer.problem else None


async def _ask(run: Run, question: Question, prompt: Prompt, tries: int) -> LlmAnswer:
    _require_budget(run)
    run.llm_calls += 1
    number = run.llm_calls
    request = LlmRequest(
        purpose=question.purpose if not tries else "correction",
        messages=[ChatMessage.model_validate(message) for message in prompt.messages],
        schema_name=question.schema_name,
        json_schema=question.schema,
    )
    started, about = _now(), question.about + (f", correction {tries}" if tries else "")
    try:
        answer = await call(number, about, request)
    except ActivityError as error:
        run.llm_seconds += (_now() - started).total_seconds()
        raise _failure(run, error, question.step_id) from error
    run.llm_seconds += answer.duration / 1000
    run.ledger = run.ledger.plus(answer.usage, model=answer.model, step_id=question.step_id)
    return answer


async def call(number: int, about: str, request: LlmRequest) -> LlmAnswer:
    """One call of the model, the run's call of that number. Raises ActivityError; CancelledError when cancelled."""
    keyed = request.model_copy(update={"key": f"{workflow.info().workflow_id}/llm-{number}"})
    try:
        answer: LlmAnswer = await workflow.execute_activity(
            "ask_llm",
            keyed.model_dump(mode="json", exclude_defaults=True),
            result_type=LlmAnswer,
            activity_id=f"llm-{number}",
            summary=about[:200],
            start_to_close_timeout=policies.ASK_LLM.start_to_close,
            heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
            retry_policy=policies.ASK_LLM.retry_policy,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        raise
    return answer


def _require_budget(run: Run) -> None:
    """Raises Unanswered LLM_BUDGET when the next call may not be made; the first time it is near, that is noted."""
    spent = run.ledger.total
    spent = spent.model_copy(update={"calls": max(spent.calls, run.llm_calls)})
    judgement = budget.decide(run.plan.budget or Budget(), spent, run.llm_seconds)
    if judgement.verdict == "warn" and not any(entry.kind is LogKind.BUDGET for entry in run.log):
        run.note(LogKind.BUDGET, judgement.reason, _now())
    if judgement.verdict in ("ask", "stop"):
        run.note(LogKind.BUDGET, judgement.reason, _now(), code=budget.OVERRUN_CODE)
        raise Unanswered(f"{judgement.reason}; raise it with: plan edit ID --set budget.calls=N", budget.OVERRUN_CODE)


def _failure(run: Run, error: ActivityError, step_id: str) -> Unanswered:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Unanswered(f"the LLM could not be asked: {cause or error}"[:1_000], "LLM_UNAVAILABLE")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    try:
        usage = Usage.model_validate(detail.get("usage") or {})
    except ValidationError:
        usage = Usage()
    if usage.calls:
        run.ledger = run.ledger.plus(usage, model="", step_id=step_id)
    return Unanswered(cause.message, cause.type or "LLM_UNAVAILABLE", text=str(detail.get("said") or ""))


def _now() -> Any:
    return workflow.now()

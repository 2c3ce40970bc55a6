"""Sends LLM requests from a workflow: waits for permission, counts usage, and has unusable answers corrected.

Each request is an `ask_llm` activity with its own number and idempotency key, which returns the answer parsed and
validated. Its usage is added to the run's ledger, even if it failed. An unusable answer is sent back with all its
problems, CORRECTIONS times at most; then `Unanswered` is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.plans.agents.llm_request import ChatMessage, LlmAnswer, LlmRequest
from plansurvive.plans.errors import Unanswered
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.llm.answers import Expected, Kind, Parsed, typed
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.planning_prompts import correction_prompt
from plansurvive.plans.llm.prompt_parts import Prompt
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.usage import estimate
from plansurvive.workflows import policies
from plansurvive.workflows.llm_usage import count, failure_of, require_permission
from plansurvive.workflows.outcomes import left_behind, log_attempts

CORRECTIONS = 3
"""Corrections per question, so four answers at most."""
CORRECTABLE = frozenset(("LLM_TRUNCATED", "LLM_BAD_ANSWER"))
"""Error codes of requests that a different answer can fix. Others, such as an unreachable endpoint, are final."""
Accepted = TypeVar("Accepted")


class Question(NamedTuple):
    """A prompt, the kind of answer expected, and for logs and the UI what it is about."""

    purpose: str
    prompt: Prompt
    expected: Expected
    about: str
    step_id: str = ""


class Rejected(NamedTuple):
    """An answer that could not be used, and why."""

    text: str
    problems: list[str]
    left: int
    """Corrections left, including the one this answer is sent back for."""

    @property
    def number(self) -> int:
        """The number of this correction, from 1."""
        return CORRECTIONS + 1 - self.left


async def answered(
    schedule: Schedule, question: Question, accept: Callable[[Parsed], Accepted | AnswerProblem]
) -> Accepted:
    """The first answer that `accept` accepts, as converted by it with the state of the run. Raises Unanswered."""

    async def ask(rejected: Rejected | None) -> LlmAnswer:
        return await _ask(schedule, question, rejected)

    def judge(answer: LlmAnswer) -> Accepted | AnswerProblem:
        value = value_of(answer, question.expected.kind)
        return value if isinstance(value, AnswerProblem) else accept(value)

    def note(attempt: int, problem: str, code: str) -> None:
        text = f"{question.about}: answer {attempt} was not accepted: {problem}"
        schedule.run.note(LogKind.LLM, text[:500], _now(), code=code, subject=question.about)

    return await accepted(ask, judge, note)


async def accepted(
    ask: Callable[[Rejected | None], Awaitable[LlmAnswer]],
    judge: Callable[[LlmAnswer], Accepted | AnswerProblem],
    note: Callable[[int, str, str], None],
    is_over: Callable[[], bool] = lambda: False,
) -> Accepted:
    """The correction loop: the first accepted answer; rejected ones are sent back with problems. Raises Unanswered."""
    rejected: Rejected | None = None
    attempt = 0
    while True:
        attempt += 1
        result: Accepted | AnswerProblem
        try:
            answer = await ask(rejected)
            text, result = answer.text, judge(answer)
        except Unanswered as error:
            if error.code not in CORRECTABLE:
                raise
            text, result = error.text, AnswerProblem(message=error.message, problems=[error.message], code=error.code)
        if not isinstance(result, AnswerProblem):
            return result
        rejected = Rejected(text, result.problems or [result.message], CORRECTIONS + 1 - attempt)
        note(attempt, rejected.problems[0], result.code)
        if not rejected.left or is_over():
            why = f"the LLM gave no usable answer in {attempt} attempt{'s' * (attempt != 1)}: {result.message}"
            raise Unanswered(why[:4_000], problems=rejected.problems, text=text)


def value_of(answer: LlmAnswer, kind: Kind) -> Parsed | AnswerProblem:
    """The value that the activity parsed, or what is wrong with the answer."""
    if answer.problem:
        return AnswerProblem(message=answer.problem, problems=answer.problems or [answer.problem])
    return typed(answer.parsed or {}, kind)


async def _ask(schedule: Schedule, question: Question, rejected: Rejected | None) -> LlmAnswer:
    """Send one LLM request on behalf of a plan, once it is permitted. Raises Unanswered."""
    run = schedule.run
    await require_permission(schedule)
    run.llm_calls += 1
    prompt = question.prompt if rejected is None else correction_prompt(question.prompt, *rejected)
    request = LlmRequest(
        purpose="correction" if rejected else question.purpose,
        messages=[ChatMessage.model_validate(message) for message in prompt.messages],
        expected=question.expected,
        schema_name=question.expected.kind,
    )
    started, about = _now(), question.about + (f", correction {rejected.number}" if rejected else "")
    number, length = run.llm_calls, sum(len(message.content) for message in request.messages)
    run.ledger = run.ledger.opened(str(number), estimate(length))
    try:
        answer = await call_llm(run, number, about, request, question.step_id)
    except ActivityError as error:
        failure, usage = failure_of(error)
        count(run, usage, "", (_now() - started).total_seconds(), question.step_id)
        raise failure from error
    finally:
        run.ledger = run.ledger.closed(str(number))
    count(run, answer.usage, answer.model, answer.duration / 1000, question.step_id)
    return answer


async def call_llm(run: Run, number: int, about: str, request: LlmRequest, step_id: str = "") -> LlmAnswer:
    """Run the `ask_llm` activity, and log attempts that failed. Raises ActivityError, asyncio.CancelledError."""
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
        log_attempts(run, about, left_behind(error).attempts, _now(), step_id)
        raise
    log_attempts(run, about, answer.attempts, _now(), step_id)
    return answer


def _now() -> datetime:
    return workflow.now()

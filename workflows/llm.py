"""Sends LLM requests from a workflow, and has unusable answers corrected.

Each request is an `ask_llm` activity with its own number and idempotency key, which returns the answer parsed and
validated. An unusable answer is sent back with all its problems, CORRECTIONS times at most; then `Unanswered` is
raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.plans.errors import Unanswered
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.model import Value
from plansurvive.plans.run import Run
from plansurvive.plans.text.lists import number_of
from plansurvive.workflows import policies
from plansurvive.workflows.outcomes import left_behind, log_attempts

CORRECTIONS = 3
"""Corrections per question, so four answers at most."""
CORRECTABLE = frozenset(("LLM_TRUNCATED", "LLM_BAD_ANSWER"))
"""Error codes of requests that a different answer can fix. Others, such as an unreachable endpoint, are final."""
Accepted = TypeVar("Accepted")
Read = TypeVar("Read", bound=Value)


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
            why = f"the LLM gave no usable answer in {number_of(attempt, 'attempt')}: {result.message}"
            raise Unanswered(why[:4_000], problems=rejected.problems, text=text)


def value_of(answer: LlmAnswer, kind: type[Read]) -> Read | AnswerProblem:
    """The value that the activity parsed, or what is wrong with the answer. Fields that were not set stay unset."""
    if answer.problem:
        return AnswerProblem(message=answer.problem, problems=answer.problems or [answer.problem])
    return kind.model_validate(answer.parsed or {})


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

"""Asks the LLM on behalf of a plan: waits for permission, counts usage, and has unusable answers corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

from plansurvive.features.budget.model import note_once
from plansurvive.plans.errors import Unanswered
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.llm.answers import Expected
from plansurvive.plans.llm.corrections import correction_prompt
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.prompt_parts import Prompt
from plansurvive.plans.llm.request import ChatMessage, LlmAnswer, LlmRequest
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Value
from plansurvive.plans.usage import OVERRUN_CODE, Permission, estimate
from plansurvive.workflows.llm import Rejected, accepted, call_llm, value_of
from plansurvive.workflows.llm_usage import count, failure_of
from plansurvive.workflows.parent import granted

Accepted = TypeVar("Accepted")
Read = TypeVar("Read", bound=Value)


class Question(NamedTuple):
    """A prompt, the kind of answer expected, and for logs and the UI what it is about."""

    purpose: str
    prompt: Prompt
    expected: Expected
    about: str
    step_id: str = ""


async def answered(
    schedule: Schedule, question: Question, kind: type[Read], accept: Callable[[Read], Accepted | AnswerProblem]
) -> Accepted:
    """The first answer that `accept` accepts, as converted by it with the state of the run. Raises Unanswered."""

    async def ask(rejected: Rejected | None) -> LlmAnswer:
        return await _ask(schedule, question, rejected)

    def judge(answer: LlmAnswer) -> Accepted | AnswerProblem:
        value = value_of(answer, kind)
        return value if isinstance(value, AnswerProblem) else accept(value)

    def note(attempt: int, problem: str, code: str) -> None:
        text = f"{question.about}: answer {attempt} was not accepted: {problem}"
        schedule.run.note(LogKind.LLM, text[:500], workflow.now(), code=code, subject=question.about)

    return await accepted(ask, judge, note)


async def _ask(schedule: Schedule, question: Question, rejected: Rejected | None) -> LlmAnswer:
    """Send one LLM request on behalf of a plan, once it is permitted. Raises Unanswered."""
    run = schedule.run
    await _require_permission(schedule)
    run.llm_calls += 1
    prompt = question.prompt if rejected is None else correction_prompt(question.prompt, *rejected)
    request = LlmRequest(
        purpose="correction" if rejected else question.purpose,
        messages=[ChatMessage.model_validate(message) for message in prompt.messages],
        expected=question.expected,
        schema_name=question.expected.kind,
    )
    started, about = workflow.now(), question.about + (f", correction {rejected.number}" if rejected else "")
    number, length = run.llm_calls, sum(len(message.content) for message in request.messages)
    run.ledger = run.ledger.opened(str(number), estimate(length))
    try:
        answer = await call_llm(run, number, about, request, question.step_id)
    except ActivityError as error:
        failure, usage = failure_of(error)
        count(run, usage, "", (workflow.now() - started).total_seconds(), question.step_id)
        raise failure from error
    finally:
        run.ledger = run.ledger.closed(str(number))
    count(run, answer.usage, answer.model, answer.duration / 1000, question.step_id)
    return answer


async def _require_permission(schedule: Schedule) -> None:
    """Wait until the plan may send a request of its own. Raises Unanswered when it is refused.

    Near a limit, waits for requests of agents that are under way, and warns once. A child plan then asks its parent.
    """

    def permission() -> Permission:
        return schedule.rules.permission(schedule.run, own=True)

    run, said = schedule.run, permission()
    if said.verdict == "wait":
        await workflow.wait_condition(lambda: permission().verdict != "wait")
        said = permission()
    if said.verdict == "warn":
        note_once(run, said.reason, workflow.now())
    if said.verdict in ("ask", "stop"):
        run.note(LogKind.BUDGET, said.reason, workflow.now(), code=OVERRUN_CODE)
        raise Unanswered(said.refusal, OVERRUN_CODE)
    await granted(run)

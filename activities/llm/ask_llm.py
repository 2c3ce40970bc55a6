"""The activity `ask_llm`: one LLM request. Returns the parsed and validated answer, or fails with a stable code.

The request's `expected` (`plans.llm.answers.Expected`) decides how the text is parsed; a workflow only receives values
and problems.

It heartbeats while it waits, and closes its connection when cancelled. Errors of the endpoint are counted in the
heartbeat (`activities.attempt.heartbeat`): the death of a worker uses up no attempt, and a busy endpoint's Retry-After
is the next delay. The codes are listed in `plans.agents.llm_request`. API keys are redacted from everything returned or
raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.attempt.errors import bounded
from activities.attempt.heartbeat import Heartbeat
from activities.attempt.results import json_text
from activities.llm.errors import LONGEST_WAIT, LlmError
from activities.llm.model import LanguageModel
from plans.activity_io import LargeValue, Note
from plans.agents.answers import AgentAnswer, SimpleAnswer
from plans.agents.llm_request import (
    AgentQuestion,
    ChatMessage,
    Conversation,
    LlmAnswer,
    LlmRequest,
    Outcome,
    expected_of,
    prompt_of,
)
from plans.definition.output_schema import form_problem
from plans.errors import ToolError
from plans.llm.answers import PlanAnswer, Recovery, as_json, parsed, schema_of
from plans.llm.json_extraction import AnswerProblem
from plans.llm.prompt_parts import RESULT_CHARACTERS, Guide, ToolOutcome
from plans.model import Retry, ToolSpec
from runtime.value_store import ValueStore

JUDGE_SECONDS = 2.0
"""Time limit for validating a final answer against its output schema: either may be hostile."""
RETRY = Retry(attempts=5, delay=2.0, factor=2.0)
"""Retries when the endpoint is busy or down; the death of a worker does not count as an attempt."""


class Composed(NamedTuple):
    """A complete request, with its output schema and the stored conversation."""

    request: LlmRequest
    output_schema: dict[str, Any] | None = None
    """JSON Schema of an agent's final answer, if the request has one."""
    conversation: LargeValue | None = None
    """The stored conversation, for the next request to continue."""


@dataclass(frozen=True)
class AskLlm:
    """The `ask_llm` activity of a worker."""

    model: LanguageModel
    values: ValueStore
    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    """The worker's tools, for agent prompts."""
    retry: Retry = RETRY

    @activity.defn(name="ask_llm")
    async def ask_llm(self, request: LlmRequest) -> LlmAnswer:
        """Send the request and validate the answer; the caller should send back one that has a `problem`.

        Raises ApplicationError whose type is an LLM_ code.
        """
        started = time.monotonic()
        heartbeat = Heartbeat(lambda: {"line": f"waiting for the LLM, {time.monotonic() - started:.0f} s"}, self.retry)
        try:
            with heartbeat.beating(at_once=True):
                asked = Composed(request)
                if request.agent is not None:
                    asked = await compose(request, request.agent, self.values, self.tools)
                answer = await self.model.ask(_with_schema(asked.request), self._messages(asked.request))
                answer = await asyncio.to_thread(judged, answer, asked)
                told = {"attempt": heartbeat.errors + 1, "attempts": heartbeat.attempts}
                return answer.model_copy(update={**told, "conversation": asked.conversation})
        except ToolError as error:
            raise _failure(error, heartbeat) from None

    def _messages(self, request: LlmRequest) -> list[ChatMessage]:
        """The messages with the worker's secrets redacted."""
        if not request.messages:
            raise LlmError("LLM_REQUEST", "there is no message to send")
        secrets = self.model.secrets
        return [ChatMessage(role=each.role, content=secrets.out_of(each.content)) for each in request.messages]


async def compose(
    request: LlmRequest, question: AgentQuestion, values: ValueStore, tools: Mapping[str, ToolSpec]
) -> Composed:
    """An agent's request with its messages and the expected form of the answer; stores the conversation."""
    earlier = await values.get(question.conversation) if question.conversation else {}
    guides = [await _guide(note, values) for note in question.guides]
    outcomes = await _outcomes(question.outcomes, values)
    said = Conversation.model_validate(earlier).plus(question, guides, outcomes)
    messages = [ChatMessage.model_validate(message) for message in prompt_of(question, said, tools).messages]
    stored = await values.put(json_text(said))
    return Composed(
        request.model_copy(update={"messages": messages, "expected": expected_of(question, tools)}),
        said.output_schema,
        stored.model_copy(update={"preview": ""}),
    )


async def _outcomes(outcomes: Sequence[Outcome], values: ValueStore) -> list[ToolOutcome]:
    return [await _shown(each, values) for each in outcomes]


async def _shown(outcome: Outcome, values: ValueStore) -> ToolOutcome:
    """The result as shown in a prompt; of long output no more is loaded than is shown."""
    if outcome.large is None or not outcome.large.streams:
        return outcome.shown(await values.get(outcome.large) if outcome.large else None)
    text, length = await values.excerpt(outcome.large, outcome.offset, RESULT_CHARACTERS)
    shown = outcome.model_copy(update={"large": None, "text": text, "offset": 0}).shown()
    left = length - outcome.offset
    return shown.model_copy(update={"length": left}) if left > len(text) else shown


async def _guide(note: Note, values: ValueStore) -> Guide:
    text = await values.get(note.large) if note.large else note.text
    return Guide(path=note.path, text=str(text or ""))


def judged(answer: LlmAnswer, asked: Composed, seconds: float = JUDGE_SECONDS) -> LlmAnswer:
    """The answer with its parsed value, or with everything that is wrong with it.

    The text is dropped, except where the workflow may reject the value and send the text back (plans, recoveries).
    """
    if answer.problem or asked.request.expected is None:
        return answer
    value = parsed(answer.text, asked.request.expected)
    if isinstance(value, AnswerProblem):
        return answer.model_copy(update={"problem": value.message, "problems": value.problems})
    changes: dict[str, Any] = {"parsed": as_json(value)}
    if not isinstance(value, PlanAnswer | Recovery):
        changes["text"] = ""
    if isinstance(value, SimpleAnswer | AgentAnswer) and asked.output_schema is not None and value.final:
        changes["form_problem"] = form_problem(asked.output_schema, value.final, _deadline(seconds))
    return answer.model_copy(update=changes)


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def _with_schema(request: LlmRequest) -> LlmRequest:
    if request.expected is None:
        return request
    return request.model_copy(update={"json_schema": schema_of(request.expected)})


def _failure(error: ToolError, heartbeat: Heartbeat) -> ApplicationError:
    message, failed = bounded(error.message), heartbeat.errors + 1
    if error.retryable and heartbeat.is_final(error):
        message += f" (given up after {failed} attempt{'s' * (failed != 1)})"
    return heartbeat.failure(error, message, _details(error), LONGEST_WAIT)


def _details(error: ToolError) -> dict[str, Any]:
    if not isinstance(error, LlmError):
        return {"usage": {}}
    return {"usage": error.usage.model_dump(by_alias=True)} | ({"said": error.said} if error.said else {})

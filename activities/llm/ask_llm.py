"""The activity `ask_llm`: one LLM request. Returns the parsed and validated answer, or fails with a stable code.

The request's `expected` (`plans.llm.answers.Expected`) decides how the text is parsed; a workflow only receives values
and problems.

An agent's prompt is composed here and kept within the model's context window (`plans.agents.prompting`). What was asked
and answered is stored, and only a reference returned. If the endpoint refuses the prompt as too long all the same, it
is compacted further and sent once more.

It heartbeats while it waits, and closes its connection when cancelled. Errors of the endpoint are counted in the
heartbeat (`activities.attempt.heartbeat`): the death of a worker uses up no attempt, and a busy endpoint's Retry-After
is the next delay. The codes are listed in `plans.agents.llm_request`. API keys are redacted from everything returned or
raised.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.errors import bounded
from plansurvive.activities.attempt.heartbeat import Heartbeat
from plansurvive.activities.attempt.results import json_text
from plansurvive.activities.attempt.waiting import lift_attempts, waiting
from plansurvive.activities.feature import Layer, LlmAttempt, Waits, around_request
from plansurvive.activities.llm.errors import LONGEST_WAIT, LlmError
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.activities.llm.results import shown
from plansurvive.plans.activity_io import Note
from plansurvive.plans.agents.answers import AgentAnswer, SimpleAnswer
from plansurvive.plans.agents.llm_request import (
    BAD_ANSWER,
    TOO_LONG,
    TRUNCATED,
    AgentQuestion,
    ChatMessage,
    LlmAnswer,
    LlmRequest,
    expected_of,
    messages_of,
    repeated,
)
from plansurvive.plans.agents.prompting.compaction import Fit, bytes_of, counted, fitted, refused
from plansurvive.plans.agents.prompting.conversation import Conversation, Messages
from plansurvive.plans.definition.output_schema import form_problem
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.llm.answers import Expected, PlanAnswer, Recovery, as_json, parsed, schema_of, typed
from plansurvive.plans.llm.endpoint import CONTEXT_TOKENS
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.prompt_parts import Guide
from plansurvive.plans.llm.prompt_set import PromptSet
from plansurvive.plans.model import Retry, ToolSpec
from plansurvive.plans.usage import estimate
from plansurvive.runtime.value_store import ValueStore

JUDGE_SECONDS = 2.0
"""Time limit for validating a final answer against its output schema: either may be hostile."""
RETRY = Retry(attempts=5, delay=2.0, factor=2.0)
"""Retries when the endpoint is busy or down; the death of a worker does not count as an attempt."""


class Composed(NamedTuple):
    """A complete request; for an agent with the conversation it is made of, and the schema of the final answer."""

    request: LlmRequest
    output_schema: dict[str, Any] | None = None
    """JSON Schema of an agent's final answer, if the request has one."""
    fit: Fit | None = None


@dataclass(frozen=True)
class AskLlm:
    """The `ask_llm` activity of a worker."""

    model: LanguageModel
    values: ValueStore
    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    """The worker's tools, for agent prompts."""
    retry: Retry = RETRY
    context_tokens: int = CONTEXT_TOKENS
    """The model's context window, in tokens."""
    layers: Sequence[Layer] = ()
    """Those of the features around each request, the outermost first."""
    prompts: PromptSet = field(default_factory=PromptSet)
    """Other words for parts of system prompts, in a replay; empty: ours."""

    @activity.defn(name="ask_llm")
    async def ask_llm(self, request: LlmRequest) -> LlmAnswer:
        """Send the request and validate the answer; the caller should send back one that has a `problem`.

        Raises ApplicationError whose type is an LLM_ code.
        """
        started = time.monotonic()
        heartbeat = Heartbeat(lambda: {"line": f"waiting for the LLM, {time.monotonic() - started:.0f} s"}, self.retry)
        asked = Composed(request)
        try:
            with heartbeat.beating(at_once=True):
                if request.agent is not None:
                    asked = await compose(request, request.agent, self.values, self.tools, self.context_tokens)
                answer, asked = await self._usable(asked)
                told = {"attempt": heartbeat.errors + 1, "attempts": heartbeat.attempts}
                return answer.model_copy(update=told)
        except Waits as wait:
            raise await waiting(wait, heartbeat, lift_attempts) from None
        except ToolError as error:
            kept = await self._kept_of(asked, error) if heartbeat.is_final(error) else {}
            raise _failure(error, heartbeat, kept) from None

    async def evaluated(self, request: LlmRequest) -> LlmAnswer:
        """The same once, outside an activity: for a replay, which has neither a heartbeat nor further attempts.

        Raises ApplicationError as `ask_llm` does.
        """
        asked = Composed(request)
        try:
            if request.agent is not None:
                asked = await compose(request, request.agent, self.values, self.tools, self.context_tokens)
            return (await self._usable(asked))[0]
        except ToolError as error:
            details = {**_details(error), **await self._kept_of(asked, error)}
            raise ApplicationError(
                bounded(error.message), details, type=error.code, non_retryable=not error.retryable
            ) from None

    async def _usable(self, asked: Composed) -> tuple[LlmAnswer, Composed]:
        """The answer, judged, with the conversation that it continues; and the request that was answered."""
        answer, asked = await self._answer(asked)
        judgement = await asyncio.to_thread(judged, answer, asked)
        kept = await self._kept(asked, judgement, answer.text)
        return judgement.model_copy(update=kept), asked

    async def _answer(self, asked: Composed) -> tuple[LlmAnswer, Composed]:
        """The answer, and the request that was answered: a second one if the first was too long."""
        try:
            return await self._send(asked.request), asked
        except LlmError as error:
            if error.code != TOO_LONG:
                raise
            shorter = await asyncio.to_thread(_shorter, asked, self.tools, self.context_tokens)
            if shorter is None:
                raise
            return await self._send(shorter.request), shorter

    async def _send(self, request: LlmRequest) -> LlmAnswer:
        messages = self._messages(request)
        expected = estimate(sum(len(message.content) for message in messages))
        attempt = LlmAttempt(request.key, expected)
        return await around_request(self.layers, attempt, lambda: self.model.ask(_with_schema(request), messages))

    async def _kept(self, asked: Composed, answer: LlmAnswer, text: str) -> dict[str, Any]:
        """The stored conversation, with the answer if it is usable: the next request continues it."""
        question = asked.request.agent
        if asked.fit is None or question is None:
            return {}
        sent = bytes_of(asked.fit.messages) + _schema_bytes(asked.request.expected)
        said = counted(asked.fit.said, sent, answer.usage.prompt_tokens)
        if answer.parsed is not None:
            number = None if question.tasks is None else (question.tasks.position or 0) + 1
            said = said.answered(repeated(typed(answer.parsed, question.asked), text), number)
        return {"conversation": await self._stored(said), "compacted": asked.fit.compacted}

    async def _kept_of(self, asked: Composed, error: ToolError) -> dict[str, Any]:
        """The conversation as detail of a failure that a correction may follow."""
        if asked.fit is None or error.code not in (TRUNCATED, BAD_ANSWER):
            return {}
        return {"conversation": (await self._stored(asked.fit.said)).model_dump(mode="json", by_alias=True)}

    async def _stored(self, said: Conversation) -> LargeValue:
        stored = await self.values.put(json_text(said))
        return stored.model_copy(update={"preview": ""})

    def _messages(self, request: LlmRequest) -> list[ChatMessage]:
        """The messages with the worker's secrets redacted."""
        if not request.messages:
            raise LlmError("LLM_REQUEST", "there is no message to send")
        secrets, words = self.model.secrets, self.prompts
        return [
            ChatMessage(
                role=each.role,
                content=secrets.out_of(words.put_into(each.content) if each.role == "system" else each.content),
            )
            for each in request.messages
        ]


async def compose(
    request: LlmRequest,
    question: AgentQuestion,
    values: ValueStore,
    tools: Mapping[str, ToolSpec],
    context_tokens: int = CONTEXT_TOKENS,
) -> Composed:
    """An agent's request with its messages and the expected form of the answer. Raises LlmError LLM_TOO_LONG."""
    earlier = await values.get(question.conversation) if question.conversation else {}
    guides = [await _guide(note, values) for note in question.guides]
    outcomes = [await shown(each, values) for each in question.outcomes]
    said = Conversation.model_validate(earlier).about(question.request, question.output_schema)
    said = said.without_guides() if question.forget_guides else said
    said = said.plus(guides, outcomes, question.notice, limit=context_tokens)
    if question.problems:
        said = said.rejected(question.last, question.problems)
    return await asyncio.to_thread(_composed, request, question, said, tools, context_tokens)


def _composed(
    request: LlmRequest, question: AgentQuestion, said: Conversation, tools: Mapping[str, ToolSpec], window: int
) -> Composed:
    expected = expected_of(question, tools, said.request)

    def messages(of: Conversation) -> Messages:
        return messages_of(question, of, tools)

    number = None if question.tasks is None else (question.tasks.position or 0) + 1
    fit = fitted(said, window, messages, _schema_bytes(expected), number)
    if fit.tokens > window:
        raise LlmError(
            TOO_LONG,
            f"the prompt has about {fit.tokens:,} tokens although all earlier results were compacted; the context"
            f" window is {window:,} (PLANS_CONTEXT_TOKENS): use a model with a larger one, fewer tools, shorter"
            " agents.md files or a shorter request",
        )
    changes = {"messages": [ChatMessage.model_validate(each) for each in fit.messages], "expected": expected}
    return Composed(request.model_copy(update=changes), said.output_schema, fit)


def _shorter(asked: Composed, tools: Mapping[str, ToolSpec], window: int) -> Composed | None:
    """The request with its conversation compacted further, with a key of its own; None if nothing can be compacted."""
    question = asked.request.agent
    if asked.fit is None or question is None:
        return None
    again = _composed(asked.request, question, refused(asked.fit), tools, window)
    if again.fit is None or again.fit.messages == asked.fit.messages:
        return None
    fit = again.fit._replace(compacted=again.fit.compacted + asked.fit.compacted)
    return again._replace(request=again.request.model_copy(update={"key": f"{asked.request.key}:compacted"}), fit=fit)


def _schema_bytes(expected: Expected | None) -> int:
    return len(json.dumps(schema_of(expected))) if expected else 0


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


def _failure(error: ToolError, heartbeat: Heartbeat, kept: Mapping[str, Any]) -> ApplicationError:
    message, failed = bounded(error.message), heartbeat.errors + 1
    if error.retryable and heartbeat.is_final(error):
        message += f" (given up after {failed} attempt{'s' * (failed != 1)})"
    return heartbeat.failure(error, message, {**_details(error), **kept}, LONGEST_WAIT)


def _details(error: ToolError) -> dict[str, Any]:
    if not isinstance(error, LlmError):
        return {"usage": {}}
    return {"usage": error.usage.model_dump(by_alias=True)} | ({"said": error.said} if error.said else {})

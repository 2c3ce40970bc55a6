"""The activity `ask_llm`: one LLM request. Returns the parsed and validated answer, or fails with a stable code.

The request's `expected` names the `AnswerKind` that says how the text is read; a workflow only receives values
and problems.

A request without messages is composed by the feature whose part it has (`activities.llm.composing`). If the endpoint
refuses one as too long, it is shortened and sent once more, where it can be.

It heartbeats while it waits, and closes its connection when cancelled. Errors of the endpoint are counted in the
heartbeat (`activities.attempt.heartbeat`): the death of a worker uses up no attempt, and a busy endpoint's Retry-After
is the next delay. The codes are listed in `plans.llm.request`. API keys are redacted from everything returned or
raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.heartbeat import Heartbeat
from plansurvive.activities.attempt.waiting import lift_attempts, waiting
from plansurvive.activities.feature import Layer, LlmAttempt, Onion, Waits
from plansurvive.activities.llm.composing import Composed, Composer, Site
from plansurvive.activities.llm.errors import LONGEST_WAIT, LlmError
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.activities.values.errors import bounded
from plansurvive.plans.errors import ToolError
from plansurvive.plans.llm.answers import AnswerKind, as_json
from plansurvive.plans.llm.endpoint import CONTEXT_TOKENS
from plansurvive.plans.llm.json_extraction import AnswerProblem
from plansurvive.plans.llm.prompt_set import PromptSet
from plansurvive.plans.llm.request import TOO_LONG, ChatMessage, LlmAnswer, LlmRequest
from plansurvive.plans.model import Retry, ToolSpec
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.usage import estimate
from plansurvive.runtime.value_store import ValueStore

RETRY = Retry(attempts=5, delay=2.0, factor=2.0)
"""Retries when the endpoint is busy or down; the death of a worker does not count as an attempt."""


@dataclass(frozen=True)
class AskLlm:
    """The `ask_llm` activity of a worker."""

    model: LanguageModel
    values: ValueStore
    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    """The worker's tools, for prompts that are composed here."""
    retry: Retry = RETRY
    context_tokens: int = CONTEXT_TOKENS
    """The model's context window, in tokens."""
    layers: Sequence[Layer] = ()
    """Those of the features around each request, the outermost first."""
    kinds: Mapping[str, AnswerKind] = field(default_factory=dict)
    """The kinds of answers that the features of this worker ask for, by name."""
    composers: Mapping[str, Composer] = field(default_factory=dict)
    """By feature, whose part a request may have instead of messages."""
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
                asked = await self._composed(request)
                answer, asked = await self._usable(asked)
                told = {"attempt": heartbeat.errors + 1, "attempts": heartbeat.attempts}
                return answer.model_copy(update=told)
        except Waits as wait:
            raise await waiting(wait, heartbeat, lift_attempts) from None
        except ToolError as error:
            kept = await asked.failed(error.code) if heartbeat.is_final(error) else {}
            raise _failure(error, heartbeat, kept) from None

    async def evaluated(self, request: LlmRequest) -> LlmAnswer:
        """The same once, outside an activity: for a replay, which has neither a heartbeat nor further attempts.

        Raises ApplicationError as `ask_llm` does.
        """
        asked = Composed(request)
        try:
            asked = await self._composed(request)
            return (await self._usable(asked))[0]
        except ToolError as error:
            details = {**_details(error), **await asked.failed(error.code)}
            raise ApplicationError(
                bounded(error.message), details, type=error.code, non_retryable=not error.retryable
            ) from None

    async def _composed(self, request: LlmRequest) -> Composed:
        for feature, composer in self.composers.items():
            if feature in request.parts:
                return await composer.composed(request, Site(self.values, self.tools, self.context_tokens))
        return Composed(request)

    async def _usable(self, asked: Composed) -> tuple[LlmAnswer, Composed]:
        """The answer, judged, and the request that was answered."""
        answer, asked = await self._answer(asked)
        judgement = await asyncio.to_thread(self._judged, answer, asked)
        return await asked.answered(judgement, answer.text), asked

    async def _answer(self, asked: Composed) -> tuple[LlmAnswer, Composed]:
        """The answer, and the request that was answered: a second one if the first was too long."""
        try:
            return await self._send(asked.request), asked
        except LlmError as error:
            if error.code != TOO_LONG:
                raise
            shorter = await asyncio.to_thread(asked.shorter)
            if shorter is None:
                raise
            return await self._send(shorter.request), shorter

    async def _send(self, request: LlmRequest) -> LlmAnswer:
        messages = self._messages(request)
        expected = estimate(sum(len(message.content) for message in messages))
        attempt = LlmAttempt(request.key, expected)
        return await self._onion.around_request(attempt, lambda: self.model.ask(self._with_schema(request), messages))

    @cached_property
    def _onion(self) -> Onion:
        return Onion(self.layers)

    def _judged(self, answer: LlmAnswer, asked: Composed) -> LlmAnswer:
        """The answer with its parsed value, or with everything that is wrong with it.

        The text is dropped, except where the workflow may reject the value and send the text back.
        """
        if answer.problem or asked.request.expected is None:
            return answer
        kind = self.kinds[asked.request.expected.kind]
        value = kind.read(answer.text, asked.request.expected)
        if isinstance(value, AnswerProblem):
            return answer.model_copy(update={"problem": value.message, "problems": value.problems})
        changes = {"parsed": as_json(value), **({} if kind.is_sent_back else {"text": ""})}
        return asked.judged(answer.model_copy(update=changes), value)

    def _with_schema(self, request: LlmRequest) -> LlmRequest:
        if request.expected is None:
            return request
        return request.model_copy(update={"json_schema": self.kinds[request.expected.kind].schema_of(request.expected)})

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


def _failure(error: ToolError, heartbeat: Heartbeat, kept: Mapping[str, Any]) -> ApplicationError:
    message, failed = bounded(error.message), heartbeat.errors + 1
    if error.retryable and heartbeat.is_final(error):
        message += f" (given up after {number_of(failed, 'attempt')})"
    return heartbeat.failure(error, message, {**_details(error), **kept}, LONGEST_WAIT)


def _details(error: ToolError) -> dict[str, Any]:
    if not isinstance(error, LlmError):
        return {"usage": {}}
    return {"usage": error.usage.model_dump(by_alias=True)} | ({"said": error.said} if error.said else {})

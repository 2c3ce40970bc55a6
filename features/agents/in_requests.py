"""An agent's requests, composed in the worker and kept within the model's context window (`model.prompts`).

What was asked and answered is stored, and only a reference returned: the next request continues it.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import time
from collections.abc import Callable
from typing import Any

from plansurvive.activities.llm.composing import Composed, Composer, Site
from plansurvive.activities.llm.errors import LlmError
from plansurvive.activities.outputs.stored_output import Number, output
from plansurvive.activities.values.results import json_text
from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer
from plansurvive.features.agents.model.compaction import bytes_of, counted, fitted, refused
from plansurvive.features.agents.model.conversation import Conversation, Messages
from plansurvive.features.agents.model.question import (
    AgentQuestion,
    Continuation,
    Outcome,
    expected_of,
    messages_of,
    repeated,
)
from plansurvive.features.agents.model.reading import KINDS, VALUES
from plansurvive.plans.activity_io import STDERR, STDOUT, Logs, Note
from plansurvive.plans.definition.output_schema import form_problem
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.llm.prompt_parts import RESULT_CHARACTERS, Guide, ToolOutcome
from plansurvive.plans.llm.request import BAD_ANSWER, TOO_LONG, TRUNCATED, ChatMessage, LlmAnswer, LlmRequest
from plansurvive.plans.model import Value
from plansurvive.plans.views.progress.logs import LoggedAttempt
from plansurvive.runtime.value_store import ValueStore


async def shown(outcome: Outcome, values: ValueStore) -> ToolOutcome:
    """The result as shown in a prompt. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
    if outcome.logs is not None:
        return await _output(outcome, outcome.logs, values)
    if outcome.large is None or not outcome.large.streams:
        return outcome.shown(await values.get(outcome.large) if outcome.large else None)
    return _part(outcome, *await values.excerpt(outcome.large, outcome.offset, RESULT_CHARACTERS))


async def _output(outcome: Outcome, logs: Logs, values: ValueStore) -> ToolOutcome:
    """What the commands of a call without a value wrote. That it cannot be read any more is no reason to fail."""
    try:
        return _part(outcome, *await _excerpt(logs, values, outcome.offset))
    except ToolError as error:
        text = f"{outcome.text}\n(its output cannot be read: {error.message})"
        return outcome.model_copy(update={"text": text, "offset": 0}).shown()


def _part(outcome: Outcome, text: str, length: int) -> ToolOutcome:
    """A part of a result, from the outcome's offset on, of which `length` characters there are."""
    part = outcome.model_copy(update={"large": None, "text": text, "length": None, "offset": 0}).shown()
    left = max(length - outcome.offset, 0)
    return part.model_copy(update={"offset": outcome.offset, "length": left if left > len(text) else None})


async def _excerpt(logs: Logs, values: ValueStore, offset: int) -> tuple[str, int]:
    """RESULT_CHARACTERS of the output, in the order in which it was written, and the length of all of it."""
    streams: tuple[Number, Number] = (STDOUT, STDERR)
    decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in streams}
    found, position = [""], 0
    async for piece in output(LoggedAttempt(logs=logs), values, {STDOUT: 0, STDERR: 0}):
        text = decoders[piece.stream].decode(piece.data)
        start, end = max(offset - position, 0), max(offset + RESULT_CHARACTERS - position, 0)
        found.append(text[start:end])
        position += len(text)
    return "".join(found), position


JUDGE_SECONDS = 2.0
"""Time limit for validating a final answer against its output schema: either may be hostile."""


class Talk(Composed):
    """One request of a conversation with an agent's model. Raises LlmError LLM_TOO_LONG if it cannot be sent."""

    def __init__(self, request: LlmRequest, said: Conversation, site: Site) -> None:
        self._question, self._site = request.part(AgentQuestion), site
        expected = expected_of(self._question, site.tools, said.request)
        self._schema_bytes = len(json.dumps(KINDS[expected.kind].schema_of(expected)))
        self.fit = fitted(said, site.context_tokens, self._messages, self._schema_bytes, self._task)
        if self.fit.tokens > site.context_tokens:
            raise LlmError(
                TOO_LONG,
                f"the prompt has about {self.fit.tokens:,} tokens although all earlier results were compacted; the"
                f" context window is {site.context_tokens:,} (PLANS_CONTEXT_TOKENS): use a model with a larger one,"
                " fewer tools, shorter agents.md files or a shorter request",
            )
        messages = [ChatMessage.model_validate(each) for each in self.fit.messages]
        super().__init__(request.model_copy(update={"messages": messages, "expected": expected}))

    def shorter(self) -> Talk | None:
        """The request with its conversation compacted further."""
        again = Talk(self.request, refused(self.fit), self._site)
        if again.fit.messages == self.fit.messages:
            return None
        again.fit = again.fit._replace(compacted=again.fit.compacted + self.fit.compacted)
        again.request = again.request.model_copy(update={"key": f"{self.request.key}:compacted"})
        return again

    def judged(self, answer: LlmAnswer, value: Value, seconds: float = JUDGE_SECONDS) -> LlmAnswer:
        """Says how a final answer violates its schema."""
        schema = self.fit.said.output_schema
        if not isinstance(value, SimpleAnswer | AgentAnswer) or schema is None or not value.final:
            return answer
        problem = form_problem(schema, value.final, _deadline(seconds))
        return _with(answer, Continuation(form_problem=problem))

    async def answered(self, answer: LlmAnswer, text: str) -> LlmAnswer:
        """With the stored conversation, which has the answer if it is usable."""
        sent = bytes_of(self.fit.messages) + self._schema_bytes
        said = counted(self.fit.said, sent, answer.usage.prompt_tokens)
        if answer.parsed is not None:
            said = said.answered(repeated(VALUES[self._question.asked].model_validate(answer.parsed), text), self._task)
        stored = {"conversation": await self._stored(said), "compacted": self.fit.compacted}
        return _with(answer, answer.part(Continuation).model_copy(update=stored))

    async def failed(self, code: str) -> dict[str, Any]:
        """The conversation, if a correction may follow."""
        if code not in (TRUNCATED, BAD_ANSWER):
            return {}
        return {"conversation": (await self._stored(self.fit.said)).model_dump(mode="json", by_alias=True)}

    @property
    def _task(self) -> int | None:
        tasks = self._question.tasks
        return None if tasks is None else (tasks.position or 0) + 1

    def _messages(self, said: Conversation) -> Messages:
        return messages_of(self._question, said, self._site.tools)

    async def _stored(self, said: Conversation) -> LargeValue:
        stored = await self._site.values.put(json_text(said))
        return stored.model_copy(update={"preview": ""})


class AgentComposer(Composer):
    """Composes the requests that have an `AgentQuestion`."""

    feature = "agents"

    async def composed(self, request: LlmRequest, site: Site) -> Talk:
        """The conversation so far, with what the question adds to it."""
        question, values = request.part(AgentQuestion), site.values
        earlier = await values.get(question.conversation) if question.conversation else {}
        guides = [await _guide(note, values) for note in question.guides]
        outcomes = [await shown(each, values) for each in question.outcomes]
        said = Conversation.model_validate(earlier).about(question.request, question.output_schema)
        said = said.without_guides() if question.forget_guides else said
        said = said.plus(guides, outcomes, question.notice, limit=site.context_tokens)
        if question.problems:
            said = said.rejected(question.last, question.problems)
        return await asyncio.to_thread(Talk, request, said, site)


def _with(answer: LlmAnswer, part: Continuation) -> LlmAnswer:
    return answer.model_copy(update={"parts": {**answer.parts, part.feature: part}})


async def _guide(note: Note, values: ValueStore) -> Guide:
    text = await values.get(note.large) if note.large else note.text
    return Guide(path=note.path, text=str(text or ""))


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


ANSWERS, COMPOSER = tuple(KINDS.values()), AgentComposer()

"""The activity `ask_llm`: one question to the LLM, answered, or failed with a code that says what to do.

It heartbeats while it waits, and ends its connection when cancelled. Errors of the endpoint are counted in the
heartbeat (`activities.attempt.heartbeat`): the death of a worker uses up no attempt, and a busy endpoint's Retry-After
is the next delay. The codes are listed in `plans.agents.llm_request`. Keys never leave: what is returned or raised is
free of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.attempt.errors import bounded
from activities.attempt.heartbeat import Heartbeat
from activities.llm.agent_prompt import compose
from activities.llm.errors import LONGEST_WAIT, LlmError
from activities.llm.model import LanguageModel
from plans.activity_io import LargeValue
from plans.agents.llm_request import ChatMessage, LlmAnswer, LlmRequest
from plans.errors import ToolError
from plans.model import Retry, ToolSpec
from runtime.value_store import ValueStore

Check = Callable[[str], str]
"""Takes an answer's JSON text; returns what is wrong with it, for the model to mend, or nothing."""
_MESSAGES = TypeAdapter(list[ChatMessage])


@dataclass(frozen=True)
class AskLlm:
    """The LLM of a worker, as an activity."""

    model: LanguageModel
    values: ValueStore
    checks: Mapping[str, Check] = field(default_factory=dict)
    """By purpose: what an answer must be besides a JSON object."""
    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    """The worker's tools, for the prompts of agents."""

    @activity.defn(name="ask_llm")
    async def ask_llm(self, request: LlmRequest) -> LlmAnswer:
        """Ask; an answer with a `problem` is for the caller to send back. Raises ApplicationError with an LLM_ code."""
        started = time.monotonic()
        heartbeat = Heartbeat(lambda: f"waiting for the LLM, {time.monotonic() - started:.0f} s")
        try:
            with heartbeat.beating(at_once=True):
                kept: LargeValue | None = None
                if request.agent is not None:
                    request, kept = await compose(request, request.agent, self.values, self.tools)
                answer = await self.model.ask(request, await self._messages(request))
                found = {"attempt": heartbeat.errors + 1, "conversation": kept}
                return self._checked(request, answer).model_copy(update=found)
        except ToolError as error:
            raise _failure(error, heartbeat, request.retry) from None

    async def _messages(self, request: LlmRequest) -> list[ChatMessage]:
        """The conversation, its stored part first, without the worker's secrets."""
        stored: list[ChatMessage] = []
        if request.messages_large is not None:
            try:
                stored = _MESSAGES.validate_python(await self.values.get(request.messages_large))
            except ValidationError:
                raise LlmError("LLM_REQUEST", "the stored messages are no list of {role, content}") from None
        messages = [*stored, *request.messages]
        if not messages:
            raise LlmError("LLM_REQUEST", "there is no message to send")
        secrets = self.model.secrets
        return [ChatMessage(role=each.role, content=secrets.out_of(each.content)) for each in messages]

    def _checked(self, request: LlmRequest, answer: LlmAnswer) -> LlmAnswer:
        check = self.checks.get(request.purpose)
        if answer.problem or check is None:
            return answer
        return answer.model_copy(update={"problem": check(answer.text)})


def _failure(error: ToolError, heartbeat: Heartbeat, retry: Retry) -> ApplicationError:
    message, failed = bounded(error.message), heartbeat.errors + 1
    if error.retryable and heartbeat.is_final(error, retry):
        message += f" (given up after {failed} attempt{'s' * (failed != 1)})"
    return heartbeat.failure(error, retry, message, _details(error), LONGEST_WAIT)


def _details(error: ToolError) -> dict[str, Any]:
    if not isinstance(error, LlmError):
        return {"usage": {}}
    return {"usage": error.usage.model_dump(by_alias=True)} | ({"said": error.said} if error.said else {})

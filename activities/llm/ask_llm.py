"""The activity `ask_llm`: one question to the LLM, answered, or failed with a code that says what to do.

It heartbeats while it waits, and ends its connection when cancelled. Errors of the endpoint are counted in the
heartbeat, as in `activities.attempt.run`: the death of a worker uses up no attempt, and a busy endpoint's Retry-After
is the next delay. The codes are listed in `plans.agents.llm_request`. Keys never leave: what is returned or raised is
free of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.attempt.errors import bounded
from activities.llm.agent_prompt import compose
from activities.llm.errors import LONGEST_WAIT, LlmError
from activities.llm.model import LanguageModel
from plans.activity_io import LargeValue
from plans.agents.llm_request import ChatMessage, LlmAnswer, LlmRequest
from plans.errors import ToolError
from plans.model import ToolSpec
from runtime.value_store import ValueStore

BEAT_SECONDS = 1.0
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
        errors = _errors_so_far(activity.info().heartbeat_details)
        beat = asyncio.create_task(_beat(errors))
        try:
            kept: LargeValue | None = None
            if request.agent is not None:
                request, kept = await compose(request, request.agent, self.values, self.tools)
            answer = await self.model.ask(request, await self._messages(request))
            return self._checked(request, answer).model_copy(update={"attempt": errors + 1, "conversation": kept})
        except ToolError as error:
            beat.cancel()
            raise _failed(error, request, errors) from None
        finally:
            beat.cancel()

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


async def _beat(errors: int) -> None:
    allowed = activity.info().heartbeat_timeout
    pause = min(BEAT_SECONDS, allowed.total_seconds() / 3) if allowed else BEAT_SECONDS
    started = time.monotonic()
    while True:
        activity.heartbeat({"errors": errors, "line": f"waiting for the LLM, {time.monotonic() - started:.0f} s"})
        await asyncio.sleep(pause)


def _failed(error: ToolError, request: LlmRequest, errors: int) -> ApplicationError:
    """What Temporal is told: whether there is another attempt, and when."""
    failed = errors + 1
    final = not error.retryable or failed >= request.retry.attempts
    message = bounded(error.message)
    if not final:
        activity.heartbeat({"errors": failed, "line": message[:200]})
    elif error.retryable:
        message += f" (given up after {failed} attempt{'s' * (failed != 1)})"
    wait = error.retry_after if error.retry_after is not None else request.retry.delay * request.retry.factor**errors
    return ApplicationError(
        message,
        _details(error, failed),
        type=error.code,
        non_retryable=final,
        next_retry_delay=None if final else timedelta(seconds=min(max(wait, 0.001), LONGEST_WAIT)),
        category=ApplicationErrorCategory.BENIGN,
    )


def _details(error: ToolError, attempt: int) -> dict[str, Any]:
    found = {"code": error.code, "attempt": attempt, "usage": {}}
    if not isinstance(error, LlmError):
        return found
    return found | {"usage": error.usage.model_dump(by_alias=True)} | ({"said": error.said} if error.said else {})


def _errors_so_far(details: Sequence[Any]) -> int:
    errors = details[0].get("errors") if details and isinstance(details[0], dict) else 0
    return errors if isinstance(errors, int) and errors >= 0 else 0

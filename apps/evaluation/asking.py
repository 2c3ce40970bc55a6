"""Where the answers to LLM requests come from: the record, or a model that is asked anew.

A model is asked by the code of the activity, with its prompts, corrections and limits of context; what it stores stays
in memory. Before each request the limits of the evaluation are checked, which all its replays share.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from plansurvive.activities.lifecycle.ask_llm import AskLlm
from plansurvive.apps.evaluation.answers import ASK
from plansurvive.apps.evaluation.played import asked
from plansurvive.apps.evaluation.record import Done, Record
from plansurvive.apps.evaluation.stage import Reply, Stopped
from plansurvive.client.prices import CostOf, cost, unpriced
from plansurvive.features.agents.model.question import AgentQuestion
from plansurvive.plans.llm.request import LlmRequest
from plansurvive.plans.usage import Usage, estimate

TRIES = 4
"""Attempts of a request to an endpoint that is busy or down."""
PAUSE = 1.0
"""Seconds before the second one; doubled before each further one."""
LIMIT = "the limit of this evaluation is reached: {}"


@dataclass
class Spending:
    """What an evaluation has spent, and may spend. Shared by replays side by side."""

    cost_of: CostOf = unpriced
    max_tokens: int | None = None
    max_cost: float | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    said: Callable[[], None] = lambda: None
    """Called after each request."""
    _under_way: int = 0
    """Tokens expected of the requests under way."""

    def begin(self, request: LlmRequest) -> int:
        """Before a request: the tokens it is expected to take. Raises Stopped if the limits do not allow it."""
        expected = estimate(_length(request))
        spent = self.usage.total_tokens + self._under_way
        if self.max_tokens is not None and spent + expected > self.max_tokens:
            raise Stopped(LIMIT.format(f"{self.usage.total_tokens:,} of {self.max_tokens:,} tokens are spent"))
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise Stopped(LIMIT.format(f"{self.cost:.4f} of {self.max_cost:g} are spent"))
        self._under_way += expected
        return expected

    def end(self, expected: int, usage: Usage, model: str) -> None:
        """After a request."""
        self._under_way -= expected
        self.usage = self.usage.plus(usage)
        self.cost += cost(self.cost_of, model, usage) or 0.0
        self.said()


class FromRecord:
    """Answers with what was recorded, in order; ends where the record does."""

    def __init__(self, record: Record) -> None:
        self._done = record.of(ASK)

    async def __call__(self, _: Mapping[str, Any], number: int) -> Reply:
        """The recorded outcome of the request with this number. Raises Stopped."""
        if number > len(self._done):
            raise Stopped(BEYOND)
        return _reply(self._done[number - 1])


BEYOND = "the record has no further LLM request"


class Anew:
    """Asks a model. `most`: the requests after which the recorded run was stopped from outside; None: it was not."""

    def __init__(self, llm: AskLlm, spending: Spending, converter: DataConverter, most: int | None = None) -> None:
        self._llm, self._spending, self._most = llm, spending, most
        self._payloads, self._failures = converter.payload_converter_class(), converter.failure_converter_class()

    async def __call__(self, request: Mapping[str, Any], number: int) -> Reply:
        """The model's answer. Raises Stopped at a limit, or where the recorded run was stopped."""
        if self._most is not None and number > self._most:
            raise Stopped(BEYOND)
        try:
            asked_for = LlmRequest.model_validate(request).model_copy(update={"key": ""})
        except ValidationError as error:
            raise Stopped(f"the request cannot be read: {error.error_count()} problems") from error
        began = time.monotonic()
        expected, spent, model = self._spending.begin(asked_for), Usage(), ""
        try:
            reply = await self._answered(asked_for, began)
            one = asked(request, reply.result, reply.failure, reply.seconds, self._llm.model.model or "")
            spent, model = one.usage, one.model
            return reply
        finally:
            self._spending.end(expected, spent, model)

    async def _answered(self, request: LlmRequest, began: float) -> Reply:
        pause = PAUSE
        for attempt in range(1, TRIES + 1):
            try:
                answer = await self._llm.evaluated(request)
                found: Sequence[Payload] = self._payloads.to_payloads([answer])
                return Reply(list(found), None, time.monotonic() - began)
            except ApplicationError as error:
                if error.non_retryable or attempt == TRIES:
                    failure = Failure()
                    self._failures.to_failure(error, self._payloads, failure)
                    failure.stack_trace = ""
                    return Reply(None, failure, time.monotonic() - began)
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")


def _length(request: LlmRequest) -> int:
    agent = request.part(AgentQuestion) if AgentQuestion.feature in request.parts else None
    stored = agent.conversation.bytes if agent and agent.conversation else 0
    new = len(agent.model_dump_json(exclude={"conversation"})) if agent else 0
    return stored + new + sum(len(message.content) for message in request.messages)


def _reply(done: Done) -> Reply:
    if done.result is None and done.failure is None and not done.cancelled:
        raise Stopped("the recorded run had not been answered yet")
    return Reply(done.result, done.failure, done.seconds, done.cancelled)

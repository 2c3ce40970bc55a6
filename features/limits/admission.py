"""Lets an attempt begin when its limits have room: asks the limiter right before the tool is called.

A wait of up to a second happens here. For a longer one the attempt ends with `LimitReached`, and Temporal begins the
next one when it is worth asking again: it holds no slot of the worker meanwhile, adds no event to the history, is
neither an error nor an attempt of the step, and counts against no time limit. Retries of a failed call are admitted
like any call. Without limits nothing of this happens.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

from plansurvive.activities.feature import Attempt, Layer, LlmAttempt, Waits
from plansurvive.features.limits.claims import TOKENS, of_call, of_request
from plansurvive.features.limits.exchanges import Exchanges, LimiterAway, claimed, given_back
from plansurvive.features.limits.limits_file import LimitsFile
from plansurvive.features.limits.model import LIMIT_REACHED, Answer, Ask, Claim, Ended
from plansurvive.plans.errors import ToolError
from plansurvive.plans.llm.request import LlmAnswer

SHORT = 1.0
"""Longest wait, in seconds, for which an attempt keeps its slot."""
PATIENCE = 2.0
"""Longest time that it keeps its slot for several such waits."""
AWAY = 5.0
"""Seconds until an attempt asks again if the limiter does not answer."""
MARGIN = (0.1, 20.0)
"""Least and most seconds within which an attempt begins once admitted."""


class LimitReached(Waits):
    """The attempt does not begin: a limit is used up."""

    code = LIMIT_REACHED


@dataclass
class Admissions(Layer):
    """The layer around attempts: the limits of a worker, and what it says to the limiter."""

    file: LimitsFile
    exchanges: Exchanges
    trip: float = 0.025
    """Seconds that an exchange takes; a moving average."""

    async def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Any:
        """The call of a tool once its limits have room. Raises LimitReached."""
        call, queue = attempt.context.call, activity.info().task_queue
        claims = of_call(self.file, attempt.tool.spec.name, queue, attempt.args, attempt.clean)
        admission = Admission(self, claims, call.key, f"{call.plan_id} {call.step_id}")
        async with admission():
            attempt.context.confirm.append(admission.confirmed)
            return await inner()

    async def request(self, attempt: LlmAttempt, inner: Callable[[], Awaitable[LlmAnswer]]) -> LlmAnswer:
        """The request once its limits have room. Raises LimitReached."""
        claims = of_request(self.file, activity.info().task_queue, attempt.tokens)
        async with Admission(self, claims, attempt.key, attempt.key.partition("/")[0])() as admission:
            answer = await inner()
            admission.tokens = answer.usage.total_tokens
            return answer

    def margin(self, claims: Sequence[Claim]) -> float:
        """Seconds within which an attempt usually begins once it has asked: at least 1 % of a window."""
        shortest = min((seconds for claim in claims for _, seconds in claim.rates), default=0)
        return min(max(4 * self.trip, min(shortest / 100, 1.0), MARGIN[0]), MARGIN[1])


@dataclass
class Admission:
    """One attempt under its limits: asks before it, confirms right before the call, and says when it has ended."""

    limits: Admissions
    claims: Sequence[Claim]
    key: str
    """The call's idempotency key, the same for all attempts."""
    what: str
    tokens: int | None = None
    """Tokens that an LLM request took, once known."""
    _asked: tuple[Ask, Answer, float] | None = field(default=None, init=False)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Admission]:
        """Surrounds the attempt. Raises LimitReached."""
        if not self.claims:
            yield self
            return
        await self._begin(self.limits.margin(self.claims))
        pause = 0.0
        try:
            yield self
        except ToolError as error:
            pause = error.retry_after or 0.0
            raise
        finally:
            self._end(pause)

    async def confirmed(self) -> None:
        """Ask again if the attempt is admitted and has taken too long since to begin. Raises LimitReached."""
        if self._asked is not None:
            ask, answer, since = self._asked
            if time.monotonic() - since > ask.margin:
                self._asked = None
                self.limits.exchanges.ended(given_back(ask, answer))
                await self._begin(self.limits.margin(self.claims))

    async def _begin(self, margin: float) -> None:
        exchanges, until = self.limits.exchanges, time.monotonic() + PATIENCE
        call = hashlib.sha256(self.key.encode()).hexdigest()[:24]
        while True:
            ask = Ask(id=uuid.uuid4().hex, call=call, what=self.what[:400], claims=list(self.claims), margin=margin)
            since = time.monotonic()
            try:
                answer = await exchanges.ask(ask)
            except LimiterAway as error:
                raise LimitReached(self.claims[0].bucket, AWAY, error.message) from None
            took = time.monotonic() - since
            self.limits.trip += 0.2 * (took - self.limits.trip)
            if answer.admitted and took <= margin:
                self._asked = (ask, answer, since)
                return
            if answer.admitted:
                exchanges.ended(given_back(ask, answer))
                margin = min(2 * max(margin, took), MARGIN[1])
            elif answer.wait > SHORT or time.monotonic() + answer.wait > until:
                raise LimitReached(answer.bucket, answer.wait, _reason(answer))
            else:
                await self._sleep(answer.wait, call)

    async def _sleep(self, seconds: float, call: str) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.limits.exchanges.left(call)
            raise

    def _end(self, pause: float) -> None:
        """Give back what was held, and say what a request really took, if there is any of this to say."""
        if self._asked is None:
            return
        ask, answer, _ = self._asked
        of_tokens = next((claim for claim in self.claims if claim.bucket == TOKENS), None)
        spent = {TOKENS: (claimed(of_tokens), self.tokens)} if of_tokens and self.tokens is not None else {}
        if pause or spent or any(claim.concurrency for claim in self.claims):
            of = [claim.bucket for claim in self.claims if not claim.bucket.startswith("queues.")] if pause else []
            self.limits.exchanges.ended(
                Ended(id=ask.id, at=answer.at, margin=ask.margin, spent=spent, pause=min(pause, 86_400.0), of=of)
            )


def _reason(answer: Answer) -> str:
    ahead = f"; {answer.ahead:,} before it" if answer.ahead else ""
    return f"waits for the limit of {answer.bucket}: {answer.wait:.0f} s{ahead}"

"""What this worker says to the limiter: the asks of all its attempts together, one exchange at a time.

While one exchange is under way, further asks gather for the next, so that the limiter has at most one message of each
worker before it. Places among concurrent calls are leases, renewed here while their calls run. What could not be said
is dropped: leases that are not renewed end, and rates count too much rather than too little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from plansurvive.features.limits.model import MAX_ASKS, RENEWAL, Answer, Ask, Claim, Ended, Exchange, Reply
from plansurvive.plans.errors import PlanError


class LimiterAway(PlanError):
    """The limiter did not answer: nothing may begin under a limit."""

    code = "LIMITER_AWAY"


class Exchanges:
    """The messages of one worker. `send` sends one, and raises LimiterAway."""

    def __init__(self, send: Callable[[Exchange], Awaitable[Reply]]) -> None:
        self._send = send
        self._asks: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self._ended: list[Ended] = []
        self._left: list[str] = []
        self._alive: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._renewal: asyncio.TimerHandle | None = None

    async def ask(self, ask: Ask) -> Answer:
        """Whether an attempt may begin. Raises LimiterAway."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asks.append((ask, future))
        self._flush()
        return await future

    def ended(self, ended: Ended) -> None:
        """Say that an attempt that was admitted has ended."""
        self._alive.pop(ended.id, None)
        self._ended.append(ended)
        self._flush()

    def left(self, call: str) -> None:
        """Say that a call waits no more."""
        self._left.append(call)
        self._flush()

    def _flush(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._say())

    async def _say(self) -> None:
        """Say what there is to say until there is nothing more."""
        try:
            while self._asks or self._ended or self._left:
                await self._exchange()
        finally:
            self._task = None

    async def _exchange(self, renews: bool = False) -> None:
        asks, self._asks = self._asks[:MAX_ASKS], self._asks[MAX_ASKS:]
        ended, self._ended = self._ended[: 10 * MAX_ASKS], self._ended[10 * MAX_ASKS :]
        left, self._left = self._left[: 10 * MAX_ASKS], self._left[10 * MAX_ASKS :]
        alive = list(self._alive) if renews else []
        try:
            reply = await self._send(Exchange(asks=[ask for ask, _ in asks], ended=ended, left=left, alive=alive))
            answers = reply.answers
            if len(answers) != len(asks):
                raise LimiterAway("the limiter is of another version, and did not answer each call")
        except LimiterAway as error:
            for _, future in asks:
                if not future.done():
                    future.set_exception(LimiterAway(error.message))
            return
        for (ask, future), answer in zip(asks, answers, strict=True):
            self._answered(ask, future, answer)

    def _answered(self, ask: Ask, future: asyncio.Future[Answer], answer: Answer) -> None:
        if answer.admitted:
            if any(claim.concurrency for claim in ask.claims):
                self._alive[ask.id] = None
                self._renew_later()
            if future.done():  # cancelled meanwhile
                self.ended(given_back(ask, answer))
        elif future.done():
            self.left(ask.call)
        if not future.done():
            future.set_result(answer)

    def _renew_later(self) -> None:
        if self._renewal is None:
            self._renewal = asyncio.get_running_loop().call_later(RENEWAL, self._renew)

    def _renew(self) -> None:
        self._renewal = None
        if self._alive:
            self._renew_later()
            task = asyncio.create_task(self._exchange(renews=True))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())


def given_back(ask: Ask, answer: Answer) -> Ended:
    """The message that an attempt that was admitted did not begin: what it claimed is free again."""
    return Ended(id=ask.id, at=answer.at, margin=ask.margin, spent={c.bucket: (claimed(c), 0) for c in ask.claims})


def claimed(claim: Claim) -> int:
    """What a claim counts for: a cost above the whole limit takes all of it."""
    return min([claim.cost, *(amount for amount, _ in claim.rates)])

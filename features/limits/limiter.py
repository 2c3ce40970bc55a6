"""The limiter: which attempts may begin now, under all limits of a task queue. Pure; its state is one model.

An attempt may begin if every bucket that it claims has room, beside the calls that wait before it there. Who may not
is given the time at which it is worth asking again, and keeps its place until some seconds after that time: calls of
plans that ended, and of workers that died, so lose it by themselves. The same holds for the places of concurrent
calls, which are leases.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from plansurvive.features.limits.model import LEASE, Answer, Ask, Claim, Ended, Exchange, LimitRow, Reply
from plansurvive.features.limits.rates import Rate
from plansurvive.features.limits.usage import Usage

PATIENCE = 5_000
"""Milliseconds after its time that a call that does not ask again keeps its place."""
MAX_BUCKETS = 1_000
"""Keys beyond these share one bucket of their limit."""
MAX_WAITING = 5_000
"""Calls whose place is known; further ones are admitted in the order in which they happen to ask."""
LONGEST_WAIT = 600_000
"""Milliseconds after which a call asks again at the latest: limits may have been raised."""
SHORTEST, LONGEST = 250, 30_000
"""Milliseconds until a call asks again whether another one has ended."""
LISTED = 10


class _State(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Bucket(_State):
    """The use of one limit, or of one key of it."""

    usage: list[Usage] = Field(default_factory=list, description="One for each length of a window.")
    rates: list[tuple[int, int]] = Field(default_factory=list, description="As last claimed.")
    concurrency: int | None = None
    lasts: float = Field(default=1_000.0, description="How long calls last, in milliseconds; a moving average.")
    closed: int = Field(default=0, description="Until when its server asked to be left alone.")

    def of(self, seconds: int) -> Usage:
        """The use in windows of this length."""
        found = next((each for each in self.usage if each.seconds == seconds), None)
        if found is None:
            found = Usage(seconds=seconds)
            self.usage.append(found)
        return found


class Lease(_State):
    """One of the concurrent calls of some buckets."""

    call: str
    buckets: list[str]
    began: int
    until: int


class Waiter(_State):
    """A call that waits, and for what."""

    bucket: str
    cost: int
    due: int
    what: str


class _Ahead(NamedTuple):
    """What calls that came before want of a bucket: all of them, and those whose time has come."""

    all: int
    due: int


class Limiter(_State):
    """The state of all limits of a task queue."""

    time: int = 0
    buckets: dict[str, Bucket] = Field(default_factory=dict)
    leases: dict[str, Lease] = Field(default_factory=dict, description="By attempt.")
    waiters: dict[str, Waiter] = Field(default_factory=dict, description="By call, the first first.")

    def exchange(self, said: Exchange, now: int) -> Reply:
        """Judge what a worker says. `now` is in milliseconds; a clock that was set back counts as standing still."""
        self._pass(now)
        for each in said.alive:
            if each in self.leases:
                self.leases[each].until = self.time + int(LEASE * 1_000)
        for ended in said.ended:
            self._end(ended)
        for call in said.left:
            self.waiters.pop(call, None)
        return Reply(answers=[self._answer(ask) for ask in said.asks])

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in use and nobody waits."""
        return not (self.buckets or self.leases or self.waiters)

    def rows(self, now: int) -> list[LimitRow]:
        """All buckets, for lists. Changes nothing that counts."""
        self._pass(now)
        return [self._row(name, bucket) for name, bucket in sorted(self.buckets.items())]

    def tidy(self, now: int) -> None:
        """Forget what counts no more."""
        self._pass(now)
        used = {name for lease in self.leases.values() for name in lease.buckets}
        used |= {waiter.bucket for waiter in self.waiters.values()}
        for name in list(self.buckets):
            bucket = self.buckets[name]
            if name not in used and bucket.closed <= self.time and not any(each.times for each in bucket.usage):
                del self.buckets[name]

    def _pass(self, now: int) -> None:
        self.time = max(self.time, now)
        for bucket in self.buckets.values():
            for usage in bucket.usage:
                usage.drop(self.time)
        self.leases = {name: lease for name, lease in self.leases.items() if lease.until > self.time}
        self.waiters = {call: each for call, each in self.waiters.items() if each.due + PATIENCE > self.time}

    def _answer(self, ask: Ask) -> Answer:
        for name in [name for name, lease in self.leases.items() if lease.call == ask.call]:
            del self.leases[name]  # of an attempt before: its worker is gone, or it has ended
        claims = [self._taken(claim) for claim in ask.claims]
        for claim in claims:
            ahead = self._ahead(ask.call, claim.bucket)
            wait = self._wait(claim, ahead)
            if wait > 0:
                return self._refuse(ask, claim, min(wait, LONGEST_WAIT), ahead.all)
        self.waiters.pop(ask.call, None)
        for claim in claims:
            for amount, seconds in claim.rates:
                self.buckets[claim.bucket].of(seconds).add(self.time, ask.margin, min(claim.cost, amount))
        if held := [claim.bucket for claim in claims if claim.concurrency]:
            until = self.time + int(LEASE * 1_000)
            self.leases[ask.id] = Lease(call=ask.call, buckets=held, began=self.time, until=until)
        return Answer(admitted=True, at=self.time)

    def _taken(self, claim: Claim) -> Claim:
        """The claim, with its bucket noted; of one key too many, a claim of the bucket that these share."""
        if claim.bucket not in self.buckets and len(self.buckets) >= MAX_BUCKETS:
            self.tidy(self.time)
            if len(self.buckets) >= MAX_BUCKETS:
                claim = claim.model_copy(update={"bucket": shared(claim.bucket)})
        bucket = self.buckets.setdefault(claim.bucket, Bucket())
        bucket.rates, bucket.concurrency = list(claim.rates), claim.concurrency
        return claim

    def _ahead(self, call: str, bucket: str) -> _Ahead:
        """The cost of the calls that wait before this one."""
        every = due = 0
        for other, waiter in self.waiters.items():
            if other == call:
                break
            if waiter.bucket == bucket:
                every += waiter.cost
                due += waiter.cost if waiter.due <= self.time else 0
        return _Ahead(every, due)

    def _wait(self, claim: Claim, ahead: _Ahead) -> int:
        """Milliseconds until the bucket has room for the claim; 0: now.

        What a rate has left although calls wait was given back: they come later, and find what they were promised.
        """
        bucket = self.buckets[claim.bucket]
        waits = [max(0, bucket.closed - self.time)]
        for amount, seconds in claim.rates:
            usage, cost = bucket.of(seconds), min(claim.cost, amount)
            if usage.room_in(amount, cost + ahead.due, self.time):
                waits.append(usage.room_in(amount, cost + ahead.all, self.time))
        if claim.concurrency:
            running = sum(claim.bucket in lease.buckets for lease in self.leases.values())
            turns = (running + ahead.all) // claim.concurrency
            waits.append(turns and int(min(max(turns * bucket.lasts, SHORTEST), LONGEST)))
        return max(waits)

    def _refuse(self, ask: Ask, claim: Claim, wait: int, ahead: int) -> Answer:
        known = self.waiters.get(ask.call)
        if known is not None and known.bucket == claim.bucket:
            known.due = self.time + wait
        elif known is not None or len(self.waiters) < MAX_WAITING:
            cost = min([claim.cost, *(amount for amount, _ in claim.rates)])
            waiter = Waiter(bucket=claim.bucket, cost=cost, due=self.time + wait, what=ask.what)
            self.waiters[ask.call] = waiter  # who waited at another limit keeps its place
        return Answer(admitted=False, wait=wait / 1_000, bucket=claim.bucket, ahead=ahead)

    def _end(self, ended: Ended) -> None:
        lease = self.leases.pop(ended.id, None)
        for name in lease.buckets if lease else ():
            if name in self.buckets:
                bucket = self.buckets[name]
                bucket.lasts += 0.2 * (self.time - (lease.began if lease else self.time) - bucket.lasts)
        for name, (claimed, actual) in ended.spent.items():
            bucket_ = self.buckets.get(name) or self.buckets.get(shared(name))
            for usage in bucket_.usage if bucket_ else ():
                usage.correct(ended.at, ended.margin, actual - claimed)
        for name in ended.of:
            if name in self.buckets:
                bucket = self.buckets[name]
                bucket.closed = max(bucket.closed, self.time + int(ended.pause * 1_000))

    def _row(self, name: str, bucket: Bucket) -> LimitRow:
        waiting = [waiter for waiter in self.waiters.values() if waiter.bucket == name]
        first = min((waiter.due for waiter in waiting), default=None)
        return LimitRow(
            bucket=name,
            rates=[Rate(amount, seconds).text for amount, seconds in bucket.rates],
            used=[bucket.of(seconds).total for _, seconds in bucket.rates],
            concurrency=bucket.concurrency,
            running=sum(name in lease.buckets for lease in self.leases.values()),
            waiting=len(waiting),
            next_in=None if first is None else max(0, first - self.time) / 1_000,
            paused=(bucket.closed - self.time) / 1_000 if bucket.closed > self.time else None,
            first=[waiter.what for waiter in waiting[:LISTED]],
        )


def shared(bucket: str) -> str:
    """The bucket of all keys of a limit that are too many."""
    return f"{bucket.partition('[')[0]}[*]"

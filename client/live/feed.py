"""Adds to a plan's events what the plan does not know: attempts that failed, and progress in percent, as they happen.

A live event repeats the number of the event before it, so that a watcher that continues after a number misses nothing:
live events are not stored. What they told of attempts is in the event of the step's end again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from temporalio.client import Client

from plansurvive.client.ids import plan_id
from plansurvive.client.live.in_flight import LLM, InFlight, in_flight
from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import Status
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.live import ended_text
from plansurvive.plans.views.progress.events import EventView, LogLine

LOOK_SECONDS = 0.5
"""Seconds between two looks at the activities in flight: a retry may follow after one."""
SHARE = 10
"""Pause between two looks, as a multiple of the duration of one: at most a tenth of the server's time goes to them."""
PROGRESS, ATTEMPT = "progress", "attempt"
"""Kinds of the log line in a live event."""
LONG_LOOP = 10
"""Items of a loop beyond which a pipe and `plan logs` leave out what needs no attention."""


async def with_live(
    client: Client, plan: str, events: AsyncIterator[EventView], since: int
) -> AsyncIterator[EventView]:
    """The events, and between them live events about the steps that run. Ends and raises as `events` does."""
    news = News(plan_id(plan), since)
    queue: asyncio.Queue[EventView | None] = asyncio.Queue()
    reader = asyncio.create_task(_read(events, queue))
    looker = asyncio.create_task(_look(client, plan, news, queue))
    try:
        while (event := await queue.get()) is not None:
            if event.seq > news.seq:
                news.take(event)
                yield event
            elif news.is_current(event):
                yield event.model_copy(update={"seq": news.seq})
        await reader
    finally:
        looker.cancel()
        reader.cancel()
        await asyncio.gather(reader, looker, return_exceptions=True)


async def looks(client: Client, plan: str) -> AsyncIterator[list[InFlight]]:
    """The activities in flight, about twice a second, for ever. While the server is away there is nothing to see."""
    while True:
        start = time.monotonic()
        with suppress(PlanError):
            yield await in_flight(client, plan)
        await asyncio.sleep(max(LOOK_SECONDS, SHARE * (time.monotonic() - start)))


@asynccontextmanager
async def saying_attempts(client: Client, plan: str, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Inside it each attempt that fails is said, as it happens."""

    async def told() -> None:
        news = News(plan_id(plan))
        async for seen in looks(client, plan):
            for event in news.of(seen, datetime.now(UTC)):
                for entry in event.logs or ():
                    if entry.kind == ATTEMPT:
                        say(line(entry.text))

    task = asyncio.create_task(told())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class News:
    """What has been told of the activities in flight, to tell only what is new."""

    def __init__(self, plan: str, seq: int = 0) -> None:
        self._plan, self.seq = plan, seq
        self._ended: set[str] = set()
        self._told: dict[str, tuple[int | None, str]] = {}
        self._attempts: set[tuple[str, datetime]] = set()

    def take(self, event: EventView) -> None:
        """Learn from an event of the plan which step has ended or begun, and which attempts are told with it."""
        self.seq = event.seq
        if not event.step_id or event.logs:
            return
        (self._ended.discard if event.status == Status.RUNNING else self._ended.add)(event.step_id)
        self._attempts |= {(event.step_id, attempt.began) for attempt in event.attempts or ()}

    def is_current(self, event: EventView) -> bool:
        """Whether a live event is still news: its step has not ended meanwhile."""
        return event.step_id not in self._ended

    def of(self, seen: list[InFlight], now: datetime) -> Iterator[EventView]:
        """Live events about what has changed since the last look."""
        for each in seen:
            if each.step_id in self._ended:
                continue
            for attempt in each.live.attempts:
                known = (each.step_id, attempt.began)
                if known not in self._attempts:
                    self._attempts.add(known)
                    yield self._event(each, attempt.ended, ATTEMPT, ended_text(attempt, each.live.of), attempt)
            limit = f"waits for the limit of {each.live.limit}" if each.live.limit else ""
            said = each.live.line or limit
            state = (each.live.progress, said)
            if each.tool != LLM and any(state) and self._told.get(each.key) != state:
                yield self._event(each, now, PROGRESS, said, progress=each.live.progress)
            self._told[each.key] = state
        self._told = {each.key: self._told[each.key] for each in seen if each.key in self._told}

    def _event(
        self, each: InFlight, when: datetime, kind: str, text: str, attempt: Attempt | None = None,
        progress: int | None = None,
    ) -> EventView:  # fmt: skip
        said = f"{each.what}: {text}" if each.what else text
        code, subject = attempt.code if attempt else None, each.what or None
        entry = LogLine(time=when, kind=kind, text=said, code=code, subject=subject)
        event = EventView(
            seq=self.seq, time=when, task_id=self._plan, step_id=each.step_id, status=Status.RUNNING, logs=[entry]
        )
        more = {"progress": progress, "attempts": [attempt.model_copy(update={"logs": None})] if attempt else None}
        more |= {"of": each.live.of} if attempt else {}
        return event.model_copy(update={name: value for name, value in more.items() if value is not None})


async def _read(events: AsyncIterator[EventView], queue: asyncio.Queue[EventView | None]) -> None:
    try:
        async for event in events:
            await queue.put(event)
    finally:
        queue.put_nowait(None)


async def _look(client: Client, plan: str, news: News, queue: asyncio.Queue[EventView | None]) -> None:
    async for seen in looks(client, plan):
        for event in news.of(seen, datetime.now(UTC)):
            queue.put_nowait(event)

"""Watches one plan for all who look at it: the newest brief view, and which steps changed since which version.

Viewers do not get events but what differs from what they have: whoever comes late, or comes back, misses nothing, and
a burst of changes is one update. The plan is queried once per change however many look, and not more often than a
query takes time (`SHARE`). Whether server and worker answer is asked of the server alone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.client.errors import NoWorker
from plansurvive.client.history_feed import changes
from plansurvive.client.live.in_flight import in_flight
from plansurvive.client.live.steps import by_step, with_blocks
from plansurvive.client.rpc import ask_view, describe, has_ended, translated
from plansurvive.client.verbs.runs import BriefView, LiveView, PlanView
from plansurvive.client.watchers.merging import asked_of, merged
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import Status
from plansurvive.plans.views.next_actions import worker_command
from plansurvive.plans.views.queries import BRIEF
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.task_queues import listeners

SHARE = 3.0
"""Pause after a query, as a multiple of its duration: a big plan's worker has time for its work."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at server, worker, and what is in flight."""
PATIENCE = 4.0
"""Seconds a plan may take to answer before its viewers are told that it does not."""
IDLE_SECONDS = 30.0
"""Seconds for which a watcher remains that nobody uses."""


@dataclass(frozen=True)
class Trouble:
    """Why nothing new can be seen at the moment."""

    code: str
    message: str
    since: datetime


class Watcher:
    """One plan, watched. Its tasks run from the first use until `stop`, or until the plan has ended."""

    def __init__(self, client: Client, plan: str, idle: float = IDLE_SECONDS) -> None:
        self.client, self.plan = client, plan
        self.epoch = secrets.token_hex(4)
        """Tells the versions of this watcher from those of another one of the same plan."""
        self.version = 0
        self.view: BriefView | None = None
        self.live: dict[str, LiveView] = {}
        self.has_ended = False
        self.is_terminated = False
        """Somebody ended the workflow from outside: the plan itself does not know."""
        self.queries = self.steps_read = 0
        """How often the plan was asked, and the steps in its brief answers."""
        self._failed: PlanError | None = None
        self._changed: dict[str, int] = {}
        self._head_at = self._order_at = 0
        self._troubles: dict[str, Trouble] = {}
        self._whole: tuple[int, PlanView] | None = None
        self._reading_whole = asyncio.Lock()
        self._news = asyncio.Event()
        self._viewers, self._used, self._idle = 0, time.monotonic(), idle
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._look())]

    @property
    def trouble(self) -> Trouble | None:
        """Why nothing new can be seen; None if all is well."""
        return next((self._troubles[name] for name in ("server", "worker", "plan") if name in self._troubles), None)

    @property
    def is_idle(self) -> bool:
        """Whether nobody has used it for a while."""
        return not self._viewers and time.monotonic() > self._used + self._idle

    @property
    def is_viewed(self) -> bool:
        """Whether somebody looks."""
        return self._viewers > 0

    @property
    def has_failed(self) -> bool:
        """Whether it has given up: the plan is unknown, or nobody will ever answer for it."""
        return self._failed is not None

    @property
    def cursor(self) -> str:
        """What a viewer has who has seen everything up to now."""
        return f"{self.epoch}-{self.version}"

    def since(self, cursor: str) -> int:
        """The version of a viewer's cursor; -1 if it is not one of this watcher: the viewer has nothing of it."""
        epoch, _, number = cursor.partition("-")
        known = epoch == self.epoch and number.isascii() and number.isdigit() and len(number) < 12
        return min(int(number), self.version) if known else -1

    def changed(self, since: int) -> set[str]:
        """The steps that changed after a version."""
        return {name for name, version in self._changed.items() if version > since}

    def head_changed(self, since: int) -> bool:
        """Whether something about the plan itself changed after a version."""
        return self._head_at > since

    def order_changed(self, since: int) -> bool:
        """Whether steps were added, removed or moved after a version."""
        return self._order_at > since

    @contextmanager
    def viewed(self) -> Iterator[None]:
        """While somebody looks, it does not become idle."""
        self._viewers += 1
        try:
            yield
        finally:
            self._viewers -= 1
            self._used = time.monotonic()

    async def first(self) -> BriefView:
        """The view; waits for the first one. Raises PlanNotFound, NoWorker, NotConnected."""
        self._used = time.monotonic()
        while self.view is None:
            if self._failed:
                raise self._failed
            if trouble := self.trouble:
                raise NoWorker(trouble.message, trouble.code)
            await self._news.wait()
        return self.view

    async def whole(self) -> PlanView:
        """The full view, as new as the brief one; asked for once however many want it. Raises as `runs.show`."""
        async with self._reading_whole:
            seq = (await self.first()).seq
            if self._whole is None or self._whole[0] != seq:
                self.queries += 1
                found = await ask_view(self.client, self.plan, PlanView, "plan", patience=PATIENCE)
                self._whole = found.seq, found
            return self._whole[1]

    async def newer(self, than: int, patience: float) -> bool:
        """Wait until there is a newer version than this one; False if there was none in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self.version <= than:
                    await self._news.wait()
                return True
        return False

    async def stop(self) -> None:
        """End its tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self) -> None:
        """Read the plan after each change, until it has ended."""
        try:
            async for _ in changes(self.client, self.plan):
                began = time.monotonic()
                self._learn(await self._read())
                await asyncio.sleep(SHARE * (time.monotonic() - began))
            await self._close()
        except PlanError as error:
            self._failed = error
            self._publish((), head=True)
        except RPCError as error:
            self._failed = translated(error, self.plan)
            self._publish((), head=True)

    async def _read(self) -> BriefView:
        """The brief view, waiting for server and worker. Raises NoWorker if the plan has ended and none may come."""
        while True:
            try:
                if view := await self._asked(asked_of(self.view)) or await self._asked(BRIEF):
                    self._well("plan")
                    return view
            except NotConnected as error:
                if isinstance(error, NoWorker):
                    with suppress(NotConnected):
                        if await has_ended(self.client, self.plan):
                            raise
                self._ill("plan", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _asked(self, argument: Mapping[str, Any]) -> BriefView | None:
        """The brief view; None if the answer to `asked_of` is not enough for that."""
        self.queries += 1
        found = await ask_view(self.client, self.plan, BriefView, "plan", argument, patience=PATIENCE)
        self.steps_read += len(found.steps)
        return merged(self.view, found)

    async def _close(self) -> None:
        description = await describe(self.client, self.plan)
        self.is_terminated = description.status is WorkflowExecutionStatus.TERMINATED
        self.has_ended, self.live = True, {}
        self._troubles.clear()
        self._publish((), head=True)

    async def _look(self) -> None:
        """See whether server and worker answer, and how far running steps are, while somebody looks."""
        queue = ""
        while not self.has_ended and self._failed is None:
            if self._viewers or self.view is None:
                try:
                    queue = queue or (await describe(self.client, self.plan)).task_queue
                    served = bool(await listeners(self.client, queue))
                    self._well("server")
                    if served:
                        self._well("worker")
                    else:
                        start = worker_command(queue)
                        text = f"no worker answers on queue '{queue}'; the plan waits. Start one: {start}"
                        self._ill("worker", NoWorker(text))
                    await self._look_at_running()
                except (NotConnected, RPCError) as error:
                    self._ill("server", error if isinstance(error, PlanError) else translated(error, self.plan))
                except PlanError:
                    return  # there is no such plan: `_follow` says so
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_at_running(self) -> None:
        if self.view is None or not any(step.status is Status.RUNNING for step in self.view.steps):
            return
        found = with_blocks(by_step(await in_flight(self.client, self.plan)))
        live = {name: each for name, each in found.items() if not each.is_plain}
        names = {name for name in live.keys() | self.live.keys() if live.get(name) != self.live.get(name)}
        self.live = live
        if names:
            self._publish(names)

    def _learn(self, view: BriefView) -> None:
        before, self.view = self.view, view
        if before is None:
            self._publish([step.id for step in view.steps], head=True, order=True)
            return
        known = {step.id: step for step in before.steps}
        names = [step.id for step in view.steps if (had := known.get(step.id)) is not step and had != step]
        order = [step.id for step in before.steps] != [step.id for step in view.steps]
        if names or order or _head(before) != _head(view):
            self._publish(names, head=True, order=order)

    def _ill(self, name: str, error: PlanError) -> None:
        if name not in self._troubles:
            self._troubles[name] = Trouble(error.code, error.message, datetime.now(UTC))
            self._publish((), head=True)

    def _well(self, name: str) -> None:
        if self._troubles.pop(name, None):
            self._publish((), head=True)

    def _publish(self, names: Iterable[str], *, head: bool = False, order: bool = False) -> None:
        self.version += 1
        self._changed |= dict.fromkeys(names, self.version)
        self._head_at = self.version if head else self._head_at
        self._order_at = self.version if order else self._order_at
        news, self._news = self._news, asyncio.Event()
        news.set()


def _head(view: BriefView) -> tuple[object, ...]:
    return view.status, view.counts, view.pending, view.more_pending, view.version, view.seq, view.closing


async def updates(
    watcher: Watcher, cursor: str, every: float, keep: float, told: Callable[[int], str]
) -> AsyncIterator[str]:
    """What to send to one viewer, from its cursor on, at most once in `every` seconds; until the plan has ended.

    `told` makes the text for what changed since a version (-1: everything). After `keep` seconds without news, an
    empty comment keeps the connection open.
    """
    with watcher.viewed():
        since = watcher.since(cursor)
        while True:
            version, ended = watcher.version, watcher.has_ended
            if version > since:
                yield told(since)
                since = version
            if ended:
                return
            await asyncio.sleep(every)
            if not await watcher.newer(since, keep):
                yield ": nothing new\n\n"

"""All decisions that wait for a person, over all plans and agents: one watcher for all viewers of the page.

While somebody looks, the server's index is asked every EVERY seconds which plans await a person; only plans of which
that has changed, and the others once in RENEWED seconds, are queried. Queries add no events to histories.

New decisions come in at the end and decided ones stay: a list replaced as a whole puts another call under the finger
that is about to approve.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from temporalio.client import Client

from plansurvive.apps.web.common.service import Service
from plansurvive.client.listing import Listed, list_plans
from plansurvive.client.rpc import ask_view
from plansurvive.client.verbs.pending import Pending, number_to_decide, pending
from plansurvive.plans.errors import PlanError
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.queries import BRIEF

EVERY = 1.0
"""Seconds between two looks at the index while somebody watches."""
RENEWED = 5.0
"""Seconds after which a plan is queried again although the index says nothing new: what it asks may have changed."""
SILENT = 15.0
"""The same for a plan that did not answer, or asked nothing although the index said so: pages do not wait for it."""
PATIENCE = 2.0
"""Seconds that a plan may take to answer."""
EXPLAINED = 20
"""Decisions that are gone of which the plan is asked what became of them, at most, per look."""
MOST = 2_000
"""Plans that are looked at."""
_OUTCOMES = (LogKind.APPROVED, LogKind.DENIED, LogKind.ANSWERED, LogKind.EXPIRED)


@dataclass(frozen=True)
class Waiting:
    """What waits for people."""

    decisions: tuple[Pending, ...] = ()
    """Oldest first."""
    reviews: tuple[Listed, ...] = ()
    """Plans that await their review."""
    silent: tuple[str, ...] = ()
    """Sentences about plans that did not answer."""
    problem: str = ""
    """Why nothing can be told now; the rest is as it last was."""
    gone: dict[str, str] = field(default_factory=dict)
    """What became of decisions that were here before, by key."""

    def of(self, viewer: Viewer) -> Waiting:
        """The same with the decisions that this person may make, alone."""
        return replace(self, decisions=tuple(item for item in self.decisions if not item.barred(viewer)))

    @property
    def count(self) -> int:
        """How much there is to decide: all items of one step in a loop count as one."""
        return number_to_decide(self.decisions) + len(self.reviews)

    @property
    def keys(self) -> list[str]:
        """Names of everything that waits."""
        return [item.key for item in self.decisions] + [review_key(each) for each in self.reviews]


def review_key(listed: Listed) -> str:
    """Names a review, as `Pending.key` names a decision."""
    return f"review-{listed.plan_id}"


class Inbox:
    """The watcher of one served page."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._now = Waiting()
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self._known: dict[str, tuple[tuple[str, ...] | None, float, tuple[Pending, ...]]] = {}
        """By plan: what the index said of it, when it was queried, and what it asked."""
        self._silent: dict[str, float] = {}
        """When a sentence about a plan that does not answer was last said."""
        self._viewers = 0
        self._changed = asyncio.Condition()
        self._watching: asyncio.Task[None] | None = None

    async def now(self, max_age: float = EVERY / 2) -> Waiting:
        """What waits, as of at most `max_age` seconds ago. Raises NotConnected."""
        async with self._looking:
            if time.monotonic() - self._looked > max_age or self._now.problem:
                await self._look(await self._service.client())
            return self._now

    async def follow(self) -> AsyncGenerator[Waiting, None]:
        """What waits, at once and whenever it has changed; also when the server goes away and comes back."""
        self._viewers += 1
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        try:
            seen: Waiting | None = None
            while True:
                async with self._changed:
                    while not self._looked or self._now is seen:
                        await self._changed.wait()
                    seen = self._now
                yield seen
        finally:
            self._viewers -= 1

    def forget(self, plan: str) -> None:
        """Ask a plan again before anything else is shown: somebody has just decided in it."""
        self._known.pop(plan, None)
        self._looked = 0.0

    async def _watch(self) -> None:
        while self._viewers:
            before = self._now
            try:
                now = await self.now(EVERY / 2)
            except PlanError as error:
                self._now = now = replace(self._now, problem=error.message)
                self._looked = time.monotonic()
            if now is not before:
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(EVERY)

    async def _look(self, client: Client) -> None:
        listed = [each async for each in list_plans(client, running=True, agents=True, awaiting=True, limit=MOST)]
        reviews = tuple(each for each in reversed(listed) if each.status == PlanStatus.REVIEW and not each.waiting)
        silent = await self._renew(client, [each for each in listed if each.waiting != []])
        items = [item for each in listed for item in self._known.get(each.plan_id, (None, 0.0, ()))[2]]
        items.sort(key=lambda item: (item.since is None, item.since or 0, item.plan_id))
        gone = await self._explained(client, {item.key for item in items})
        found = Waiting(tuple(items), reviews, self._told(silent), gone=gone)
        self._looked = time.monotonic()
        if found != self._now:
            self._now = found

    async def _renew(self, client: Client, asking: list[Listed]) -> list[str]:
        """Query the plans of which something may have changed. Returns sentences about those that did not answer."""
        now, silent = time.monotonic(), list[str]()
        signs = {each.plan_id: None if each.waiting is None else tuple(each.waiting) for each in asking}
        self._known = {plan: known for plan, known in self._known.items() if plan in signs}
        due = [each for each in asking if not self._is_fresh(each.plan_id, signs[each.plan_id], now)]
        found: dict[str, list[Pending]] = {}
        async for item in pending(client, silent.append, patience=PATIENCE, candidates=due):
            found.setdefault(item.plan_id, []).append(item)
        for each in due:
            self._known[each.plan_id] = signs[each.plan_id], now, tuple(found.get(each.plan_id, ()))
        return silent

    def _is_fresh(self, plan: str, sign: tuple[str, ...] | None, now: float) -> bool:
        known = self._known.get(plan)
        return known is not None and known[0] == sign and now < known[1] + (RENEWED if known[2] else SILENT)

    def _told(self, silent: list[str]) -> tuple[str, ...]:
        """The sentences about plans that did not answer, those of plans that were not due included."""
        now = time.monotonic()
        self._silent = {text: at for text, at in self._silent.items() if now < at + 1.5 * SILENT}
        self._silent |= dict.fromkeys(silent, now)
        return tuple(self._silent)

    async def _explained(self, client: Client, keys: set[str]) -> dict[str, str]:
        """What became of the decisions that are gone now; what is known of earlier ones is kept for a while."""
        gone = [item for item in self._now.decisions if item.key not in keys]
        told = {key: text for key, text in list(self._now.gone.items())[-10 * EXPLAINED :] if key not in keys}
        for item in gone[:EXPLAINED]:
            told[item.key] = await outcome(client, item.plan_id, item.step_id)
        return told


async def outcome(client: Client, plan: str, step_id: str) -> str:
    """What became of a decision, as the plan's log says it: who decided what. Empty if that is not known."""
    with suppress(PlanError):
        view = await ask_view(client, plan, BriefView, "plan", BRIEF, patience=PATIENCE)
        for entry in reversed(view.log):
            if entry.kind in _OUTCOMES and step_id in (entry.step_id, entry.subject):
                return line(entry.text)
    return ""

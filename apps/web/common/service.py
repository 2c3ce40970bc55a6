"""What the pages share: settings, the connection to the Temporal server, who may come in, messages for people.

The server may be away when the page starts, and later: `client` connects when it is needed, and each failure is
remembered for a moment, so that many requests do not each wait for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.client.access import Access
from plansurvive.client.children.naming import parts
from plansurvive.client.listing import Listed, list_plans
from plansurvive.client.overview.standing import Standing, standings
from plansurvive.client.watchers.hub import Hub
from plansurvive.client.watchers.watcher import Watcher
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import PlanStatus
from plansurvive.runtime.connect import Connection, find
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.settings import Settings

REMEMBERED = 2.0
"""Seconds for which a failure to connect, or the number of waiting decisions, counts for further requests."""
STOOD = 4.0
"""Seconds for which it counts how an open plan stands: lists are loaded again every five."""
MAX_SAID = 20
"""Messages that one session keeps until a page shows them."""
MAX_SESSIONS = 1_000


@dataclass
class Service:
    """The parts of one served page. `environ`: the environment of the command, for what starts plans and workers."""

    settings: Settings
    environ: Mapping[str, str]
    access: Access
    connection: Connection | None = None
    """The connection to the server, once there was one; it reconnects by itself."""
    said: dict[str, list[str]] = field(default_factory=dict)
    """By session, messages that its next page shows."""
    hub: Hub = field(default_factory=Hub)
    """The plans that are watched."""
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _failed: tuple[float, PlanError] | None = None
    _counted: tuple[float, int] | None = None
    _stood: dict[str, tuple[float, Standing]] = field(default_factory=dict)

    async def connected(self) -> Connection:
        """The connection. Raises NotConnected, SettingError. Starts no server."""
        async with self._connecting:
            if self.connection is not None:
                return self.connection
            if self._failed and time.monotonic() < self._failed[0] + REMEMBERED:
                raise self._failed[1]
            try:
                self.connection = await find(self.settings)
                if self.connection is None:
                    raise NotConnected("No Temporal server is running. Start one: plan up")
            except PlanError as error:
                self._failed = time.monotonic(), error
                raise
            return self.connection

    async def client(self) -> Client:
        """The Temporal client. Raises as `connected`."""
        return (await self.connected()).client

    async def watcher(self, plan: str) -> Watcher:
        """The watcher of a plan. Raises as `connected`, and BadPlanId."""
        return await self.hub.watcher(await self.client(), plan)

    async def close(self) -> None:
        """End what runs for it."""
        await self.hub.close()

    async def waiting(self) -> int:
        """Number of waiting decisions and reviews, as the server's index knows it: one for all items of a loop."""
        if self._counted is None or time.monotonic() > self._counted[0] + REMEMBERED:
            client = await self.client()
            listed = [each async for each in list_plans(client, running=True, agents=True, awaiting=True)]
            # Agents and child plans are listed themselves.
            reviews = sum(each.status == PlanStatus.REVIEW and not each.waiting for each in listed)
            number = sum(map(own_decisions, listed)) + reviews
            self._counted = time.monotonic(), number
        return self._counted[1]

    async def standings(self, plans: Sequence[Listed]) -> dict[str, Standing]:
        """By plan id, how these stand; of an open plan, at most STOOD seconds ago, however many people look."""
        now = time.monotonic()
        self._stood = {name: each for name, each in self._stood.items() if now < each[0] + STOOD}
        open_ones = [each for each in plans if each.is_open]
        due = [each for each in open_ones if each.plan_id not in self._stood]
        if due:
            found = await standings(await self.client(), due)
            self._stood |= {name: (time.monotonic(), standing) for name, standing in found.items()}
        return {each.plan_id: self._stood[each.plan_id][1] for each in open_ones if each.plan_id in self._stood}

    def page(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """A page, see `rendering.page`."""
        return page(request, template, status=status, **context)

    def say(self, request: Request, text: str) -> None:
        """Keep a message for the next page of this session."""
        session = str(getattr(request.state, "session", ""))
        if session not in self.said and len(self.said) >= MAX_SESSIONS:
            self.said.pop(next(iter(self.said)))
        self.said[session] = [*self.said.get(session, ()), text][-MAX_SAID:]

    def take_said(self, request: Request) -> list[str]:
        """The messages kept for this session; they are shown once."""
        return self.said.pop(str(getattr(request.state, "session", "")), [])


def own_decisions(plan: Listed) -> int:
    """How many decisions the plan's own steps await: the server's index also names, by path, what is asked below it."""
    return sum(len(parts(name)) == 1 for name in plan.waiting or ())


def service_of(request: Request) -> Service:
    """The service that a request belongs to."""
    service: Service = request.app.state.service
    return service

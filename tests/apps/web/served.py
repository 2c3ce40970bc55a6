"""The application behind a real socket, for what a transport in memory cannot do: streams that last."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import uvicorn

from plansurvive.apps.web.common.service import Service
from plansurvive.client.access import SecretLink
from tests.apps.web.page_client import SECRET, pages_of
from tests.kit.waiting import PATIENCE, until


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Serve on a free port; gives a client with a session."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        service.access = SecretLink(SECRET, host, "ann")
        config = uvicorn.Config(
            pages_of(service), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=0
        )
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve([listening]))
        try:
            await until(lambda: server.started, "the page is served")
            async with httpx.AsyncClient(base_url=f"http://{host}", timeout=PATIENCE) as client:
                await client.get("/nothing", params={"key": SECRET})
                yield client
        finally:
            server.should_exit = True
            await running
            await service.close()


class Viewer:
    """One open stream of a plan, read in the background."""

    def __init__(self, client: httpx.AsyncClient, url: str, last: str = "") -> None:
        self.events: list[tuple[str, str]] = []
        """(event, data), in the order in which they came."""
        self.last = last
        self.bytes = 0
        self._task = asyncio.create_task(self._read(client, url))

    @property
    def states(self) -> dict[str, str]:
        """The newest state of every step that was told."""
        found: dict[str, str] = {}
        for event, data in self.events:
            if event == "steps":
                found |= json.loads(data)["steps"]
        return found

    @property
    def html(self) -> str:
        """All HTML that came."""
        return "\n".join(data for event, data in self.events if not event)

    @property
    def heads(self) -> list[str]:
        """The heads of the plan's page that came."""
        return [data for event, data in self.events if not event and 'id="plan-head"' in data]

    async def close(self) -> None:
        """Leave."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, httpx.HTTPError):
            await self._task

    async def _read(self, client: httpx.AsyncClient, url: str) -> None:
        headers = {"Last-Event-ID": self.last} if self.last else {}
        async with client.stream("GET", url, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream"), await answer.aread()
            event, data = "", list[str]()
            async for row in answer.aiter_lines():
                self.bytes += len(row) + 1
                name, _, rest = row.partition(": ")
                if name == "id":
                    self.last = rest
                elif name == "event":
                    event = rest
                elif name == "data":
                    data.append(rest)
                elif not row and (event or data):
                    self.events.append((event, "\n".join(data)))
                    event, data = "", []

"""A connection that follows the embedded server: started again, also on other ports, it is found by its PID file.

The SDK reconnects to the address it was given, and waits there for ever if the server returned elsewhere. `Following`
looks at the PID file before each request, while one is pending and after one has failed, and continues at the address
it names. A request that was on its way is sent again: it carries an id by which the server knows it, which the SDK's
own repetitions rely on as well.

A command that waits for a plan would wait for ever if the server had died and nobody else came along. So it starts the
server itself, unless somebody has stopped it (`plan down`).

Rejected: a proxy on a fixed port, which may be taken as well, and restarting workers, which loses what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalio.service import KeepAliveConfig, RPCError, RPCStatusCode, ServiceClient

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.base.wait import until
from plansurvive.runtime.server import Server

EVERY = 0.5
"""Seconds between two looks at the PID file while a request is pending."""
READY_SECONDS = 10.0
"""Seconds that a server which listens has to load its namespaces."""
KEEP_ALIVE = KeepAliveConfig(interval_millis=12_000, timeout_millis=8_000)
"""When a port no longer answers, its connection ends after 20 seconds instead of 45. The server refuses clients that
ask more often than every 10 seconds."""
LOST = frozenset((RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED))

Ready = Callable[[ServiceClient], Awaitable[bool]]
Revive = Callable[[], Awaitable[object]]
_Stamp = tuple[int, int, int] | None


class Following(ServiceClient):
    """A connection to the embedded server with this PID file, wherever it listens.

    `is_ready`: whether a server that accepts connections can be used yet. `revive`: starts the server again if it has
    died; raises PlanError or OSError if it cannot. None: somebody else will.
    """

    def __init__(self, service: ServiceClient, record: Path, is_ready: Ready, revive: Revive | None = None) -> None:
        super().__init__(service.config)
        self._service, self._record, self._is_ready, self._revive = service, record, is_ready, revive
        self._stamp = _stamp(record)
        self._lock = asyncio.Lock()
        self._reviving: asyncio.Task[object] | None = None

    @property
    def worker_service_client(self) -> Any:
        """The connection to the present server, for a worker: another object after the server was started again."""
        return self._service.worker_service_client

    def update_rpc_metadata(self, metadata: Any) -> None:
        """Pass on to the present connection."""
        self._service.update_rpc_metadata(metadata)

    def update_api_key(self, api_key: str | None) -> None:
        """Pass on to the present connection."""
        self._service.update_api_key(api_key)

    async def follow(self) -> bool:
        """Connect anew if the server was started again; returns whether there is a new connection. Never raises."""
        if _stamp(self._record) == self._stamp:
            return False
        before = self._service
        async with self._lock:
            stamp = _stamp(self._record)
            if stamp != self._stamp:
                server = Server.read(self._record)
                service = await self._connected(server.address) if server else None
                if service is not None:
                    self._service, self.config = service, service.config
                if service is not None or server is None:  # one that ended stays ended; one that starts, is tried again
                    self._stamp = stamp
        return self._service is not before

    async def _keep_alive(self) -> None:
        """Start the server again if its process has died. Several processes may try: one does (`server.ensure`)."""
        if self._revive is None:
            return
        server = Server.last(self._record)
        if server is None or server.is_stopped or server.is_alive():
            return
        if self._reviving is None or self._reviving.done():
            self._reviving = asyncio.create_task(self._revived(self._revive))
        await asyncio.shield(self._reviving)  # the request that noticed may be given up

    async def _revived(self, revive: Revive) -> None:
        # The request fails as it did; the next one tries again. OSError: of the state directory or of the programs.
        with suppress(PlanError, OSError):
            await revive()

    async def _connected(self, address: str) -> ServiceClient | None:
        with suppress(RuntimeError, ValueError, TimeoutError, RPCError):  # what the SDK raises for any failure
            service = await ServiceClient.connect(replace(self.config, target_host=address))
            async with asyncio.timeout(READY_SECONDS):
                await until(lambda: self._is_ready(service), every=0.1)
            return service
        return None

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **how: Any) -> Any:
        await self.follow()
        try:
            return await self._unless_moved(rpc, req, resp_type, **how)
        except RPCError as error:
            if error.status not in LOST:
                raise
            await self._keep_alive()
            if not await self.follow():
                raise
        except _Moved:
            pass
        return await self._service._rpc_call(rpc, req, resp_type, **how)

    async def _unless_moved(self, rpc: str, req: Any, resp_type: Any, **how: Any) -> Any:
        """The answer to a request. Raises _Moved as soon as the server was started again."""
        service = self._service
        pending = asyncio.ensure_future(service._rpc_call(rpc, req, resp_type, **how))
        try:
            while not (await asyncio.wait({pending}, timeout=EVERY))[0]:
                await self._keep_alive()
                await self.follow()
                if self._service is not service and not pending.done():
                    raise _Moved
            return pending.result()
        finally:
            pending.cancel()


class _Moved(Exception):
    """The server was started again while a request was pending."""


def _stamp(record: Path) -> _Stamp:
    """What tells a PID file from the one before, as it is always replaced, never rewritten; None if there is none."""
    try:
        status = record.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

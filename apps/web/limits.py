"""How uvicorn serves the page: what one connection, and all of them, may cost.

uvicorn bounds the bytes of a request's head, but not the time that it may take: whoever sends a byte a minute would
hold a connection for ever (slow loris). `BoundedProtocol` closes it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_BYTES = 32_768
HEAD_SECONDS = 10.0
CONNECTIONS = 500
"""At the same time; a viewer needs about two."""


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a limit on the time that the head of a request may take. Any application and any number of them."""

    head_seconds = HEAD_SECONDS
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take what came; a head that is whole is in time."""
        if self._late is None and self.conn.their_state is h11.IDLE:  # the first bytes of another request
            self._expect()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._forget()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._late = self.loop.call_later(self.head_seconds, self._close)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def server_options() -> dict[str, Any]:
    """Arguments of `uvicorn.Config` for a page that faces a network. No header of a proxy is believed here."""
    return {
        "http": BoundedProtocol,
        "ws": "none",
        "h11_max_incomplete_event_size": HEAD_BYTES,
        "limit_concurrency": CONNECTIONS,
        "timeout_keep_alive": 30,
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
        "log_config": None,
        "lifespan": "on",
        "timeout_graceful_shutdown": 1,
    }

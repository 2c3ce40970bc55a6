"""Serves the page on 127.0.0.1 until told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping

import uvicorn

from client.web.access import SecretLink, kept_secret
from client.web.app import application
from client.web.service import Service
from plans.errors import PlanError
from runtime.connect import Connection
from runtime.server import HOST
from runtime.settings import Settings

PORT = 7243
"""The page's usual port, ten above the Temporal server's."""


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    user: str,
    ready: Callable[[SecretLink], None],
    *,
    port: int | None = None,
    connection: Connection | None = None,
) -> None:
    """Serve until cancelled. `ready` receives the link once the page answers.

    `port`: None is the usual one, or any free one if it is taken; 0 is any free one. Raises PlanError (PORT_IN_USE).
    """
    settings.make_state_dir()
    with _listening(port) as listening:
        host = f"{HOST}:{listening.getsockname()[1]}"
        access = SecretLink(kept_secret(settings.state_dir), host, user)
        service = Service(settings, environ, access, connection)
        config = uvicorn.Config(
            application(service), log_config=None, access_log=False, lifespan="off", server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=1, ws="none",
        )  # fmt: skip
        server = _Server(config)
        running = asyncio.create_task(server.serve([listening]))
        try:
            while not server.started and not running.done():
                await asyncio.sleep(0.01)
            ready(access)
            await running
        finally:
            server.should_exit = True
            await running
            await service.close()


class _Server(uvicorn.Server):
    """Leaves signals to the command, which ends by KeyboardInterrupt."""

    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Change nothing."""
        import contextlib

        return contextlib.nullcontext()


def _listening(port: int | None) -> socket.socket:
    try:
        return socket.create_server((HOST, PORT if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((HOST, 0))
        raise PlanError(f"port {port} cannot be used: {error.strerror}; choose another: plan web --port N",
                        "PORT_IN_USE") from error  # fmt: skip

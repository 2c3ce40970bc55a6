"""Serves the page until it is stopped: on 127.0.0.1, or where the settings say, if people can log in."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping

import uvicorn

from plansurvive.apps.web.app import application
from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.limits import server_options
from plansurvive.client.access import Access, access_for
from plansurvive.client.access.choose import check
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.server import HOST
from plansurvive.runtime.setting_groups.web import split_address
from plansurvive.runtime.settings import Settings

PORT = 7243
"""The page's usual port, ten above the Temporal server's."""


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    user: str,
    ready: Callable[[Access], None],
    *,
    port: int | None = None,
    connection: Connection | None = None,
) -> None:
    """Serve until cancelled. `ready` receives the link once the page answers.

    `port`: None is the usual one, or any free one if it is taken; 0 is any free one. `PLANS_WEB_LISTEN`
    overrides both. Raises PlanError (PORT_IN_USE, WEB_NEEDS_LOGIN), SettingError.
    """
    settings.make_state_dir()
    host, port = split_address(settings.web_listen) if settings.web_listen else (HOST, port)
    check(settings, host)
    with _listening(host, port) as listening:
        here = f"[{host}]" if ":" in host else host
        access = access_for(settings, environ, user, f"{here}:{listening.getsockname()[1]}")
        service = Service(settings, environ, access, connection)
        server = _Server(uvicorn.Config(application(service), **server_options()))
        logging.getLogger("uvicorn.error").addFilter(server.is_worth_saying)
        running = asyncio.create_task(server.serve([listening]))
        try:
            while not server.started and not running.done():
                await asyncio.sleep(0.01)
            ready(access)
            await asyncio.wait((running,))  # unlike awaiting it, this leaves it alone when we are cancelled
        finally:
            server.should_exit = True
            await asyncio.wait((running,))
            logging.getLogger("uvicorn.error").removeFilter(server.is_worth_saying)
            await service.close()
        running.result()


class _Server(uvicorn.Server):
    """Leaves signals to the command, which ends by KeyboardInterrupt."""

    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Change nothing."""
        import contextlib

        return contextlib.nullcontext()

    def is_worth_saying(self, record: logging.LogRecord) -> bool:
        """Whether somebody should read it: that viewers' streams are cut off at the end is meant to be."""
        error = record.exc_info[1] if record.exc_info else None
        return not self.should_exit or not (error is None or isinstance(error, asyncio.CancelledError))


def _listening(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, PORT if port is None else port), family=family)
    except OSError as error:
        if port is None:
            return socket.create_server((host, 0), family=family)
        why = (error.strerror or str(error)).partition(" (while")[0]
        text = f"{host}:{port} cannot be used: {why}; choose another port with --port or PLANS_WEB_LISTEN"
        raise PlanError(text, "PORT_IN_USE") from error

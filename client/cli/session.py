"""A command's way to the server: settings, connection, worker, and a clean end.

`run` carries an async action through: it reads the settings, connects, keeps a worker where one is due, and runs the
action. Nothing of Temporal's outlives it, so that the process can leave in order.
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from client import end_records
from client.cli import environment
from client.cli.output import say
from runtime.background_worker import ensure_worker
from runtime.connect import Connection, reach
from runtime.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Connected:
    """What a command needs to speak with plans."""

    settings: Settings
    connection: Connection
    keeps_worker: bool
    """Whether a worker of this machine, with these settings, serves the queue."""

    @property
    def client(self) -> Client:
        """The Temporal client."""
        return self.connection.client

    def link(self, workflow_id: str) -> str | None:
        """Where the Temporal UI shows a workflow, when that is known."""
        return self.connection.workflow_link(workflow_id)


def run(action: Callable[[Connected], Awaitable[T]], *, worker: bool = True) -> T:
    """What the action returns. `worker`: it asks plans something, which a worker must answer."""
    return asyncio.run(_run(action, worker))


def look(plan: str, query: str, action: Callable[[Connected], Awaitable[T]]) -> T:
    """As `run`, for a query about one plan: no worker is started when what an ended plan left answers it."""
    return asyncio.run(_run(action, True, (plan, query)))


async def _run(action: Callable[[Connected], Awaitable[T]], worker: bool, asked: tuple[str, str] | None = None) -> T:
    settings = environment.settings()
    connection = await reach(settings, say)
    due = worker and not (asked and await _is_left(connection.client, *asked))
    kept = await ensure_worker(settings, connection) if due else None
    return await action(Connected(settings, connection, kept is not None))


async def _is_left(client: Client, plan: str, query: str) -> bool:
    try:
        return await end_records.suffices(client, plan, query)
    except RPCError:  # the action meets it again, and says what it means
        return False


def who() -> str:
    """The person at this command, for the log of a plan."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return socket.gethostname()

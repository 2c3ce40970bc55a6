"""Connects a command to the server: settings, connection and worker.

`run` runs an async action: it reads the settings, connects, makes sure a worker runs if one is needed, and calls the
action. No Temporal object outlives it, so that the process can exit cleanly.
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.cli.terminal import environment, signals
from plansurvive.client.cli.terminal.output import say
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.missing import completed
from plansurvive.client.requests.connected import Connected, with_worker
from plansurvive.runtime.connect import Connection, Origin, reach
from plansurvive.runtime.sides import sides

__all__ = ["Connected", "author", "look", "run", "who"]

T = TypeVar("T")


def run(action: Callable[[Connected], Awaitable[T]], *, worker: bool = True, starts: bool = False) -> T:
    """Connect, run the action and return its result. `worker`: the action needs a worker, for queries or updates.

    `starts`: it starts work, which a background worker with these settings must do: tools, the LLM's key.
    """
    return signals.run(_run(action, worker, starts=starts))


def look(plan: str, query: str, action: Callable[[Connected], Awaitable[T]]) -> T:
    """Like `run`, for one query to one plan: no worker is started if the end record of the plan answers the query."""
    return signals.run(_run(action, True, (plan, query)))


async def _run(
    action: Callable[[Connected], Awaitable[T]],
    worker: bool,
    query: tuple[str, str] | None = None,
    *,
    starts: bool = False,
) -> T:
    settings = environment.settings()
    connection = await reach(settings, say, revives=True)
    if (starts or connection.is_new) and (found := worth_naming(connection)):
        say(found)
    needed = worker and not (query and await _has_record(connection.client, *query))
    try:
        return await action(await with_worker(settings, connection, needed=needed, starts=starts, say=say))
    except PlanNotFound as error:
        raise await completed(connection.client, error) from error


def worth_naming(connection: Connection) -> str:
    """A sentence about a server that this command has started, or that may be somebody else's; else empty."""
    if connection.is_new:
        return f"Server {connection.address}, {connection.origin.value} in the background; `plan down` stops it."
    if connection.origin is not Origin.LOCAL:
        return ""
    return f"Server {connection.address}, {connection.origin.value}; PLANS_SERVER=embedded starts one of your own."


async def _has_record(client: Client, plan: str, query: str) -> bool:
    from plansurvive.client import end_records  # imports all that reads a Run, which `plan list` does not need

    try:
        return await end_records.suffices(client, plan, query)
    except RPCError:  # the action gets the same error and reports it
        return False


def author(by: str | None = None) -> str:
    """The author of what this command sends, as `--by` says or else `who`. Raises PlanError if that cannot be.

    A feature that proves who somebody is says so, and that it is not somebody else.
    """
    settings = environment.settings()
    proven = (side.author(settings, by or "") for side in sides("author"))
    return next(filter(None, proven), None) or by or who()


def who() -> str:
    """The user name, or the host name if there is none: the author of decisions in a plan's log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return socket.gethostname()

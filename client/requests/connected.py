"""A connection to the server as commands and agents' tools need it: with a worker, and with links for people.

What starts a plan makes sure of a worker first, as everything does that needs an answer from one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from temporalio.client import Client

from plansurvive.client.page.served_page import served
from plansurvive.runtime.connect import Connection, reach
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import serves_this_machine


@dataclass(frozen=True)
class Connected:
    """An open connection to the server, with the settings it was made from."""

    settings: Settings
    connection: Connection
    keeps_worker: bool
    """Whether this machine runs a background worker with these settings."""

    @property
    def client(self) -> Client:
        """The Temporal client."""
        return self.connection.client

    def link(self, workflow_id: str) -> str | None:
        """URL of a workflow in the Temporal UI; None if the UI is unknown."""
        return self.connection.workflow_link(workflow_id)

    def page(self, plan: str) -> str | None:
        """Link to a plan on the web page; None if this state directory serves none."""
        found = served(self.settings)
        return found.plan(plan) if found else None

    async def is_local(self) -> bool:
        """Whether the workers that run what is started share this machine's directories."""
        return self.connection.is_on_this_machine and await serves_this_machine(self.client, self.settings.task_queue)


async def with_worker(
    settings: Settings,
    connection: Connection,
    *,
    needed: bool = True,
    starts: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Connected:
    """The connection, with a background worker if one is `needed` and this machine keeps one. Raises WorkerFailed.

    `starts`: work is started, which a worker with these settings must do: tools, the LLM's key. `say` announces that
    one with other settings is replaced.
    """
    running = None
    if needed:
        from plansurvive.runtime.background_worker import ensure_worker  # `plan list` does without

        running = await ensure_worker(settings, connection, as_set=starts, say=say)
    return Connected(settings, connection, running is not None)


async def connect(settings: Settings | None = None, say: Callable[[str], None] = lambda _: None) -> Connected:
    """Connect a script to the server of its settings, by default those of the environment.

    As a command does: without a server the embedded one is started, and a background worker if none polls the queue.
    `say` announces what takes long. Raises SettingError, NotConnected and WorkerFailed.
    """
    chosen = settings or Settings.read(os.environ)
    return await with_worker(chosen, await reach(chosen, say, revives=True), starts=True, say=say)

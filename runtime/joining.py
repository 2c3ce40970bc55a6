"""A worker as one of a version: the version it joins, and what its operator does next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.runtime.settings import Settings
from plansurvive.runtime.versions.routing import current_of, require
from plansurvive.runtime.versions.version import Version


async def joined(settings: Settings, client: Client) -> Version | None:
    """The version that workers with these settings run as; None: without one.

    Raises NoVersions: the server has none.
    """
    if settings.deployment is None:
        return None
    await require(client)
    return Version.of(settings.deployment, settings.tools)


async def next_step(client: Client, settings: Settings, version: Version | None, say: Callable[[str], None]) -> None:
    """Say how a version gets new plans, if it gets none yet."""
    current = None
    with suppress(RPCError):
        current = await current_of(client, settings.task_queue)
    if version is not None and current != version:
        now = f"they go to {current.text}" if current else "they go to workers without a version"
        say(f"Version {version.text} gets no new plans yet, {now}: plan worker ramp {version.text} [PERCENT]")
    elif version is None and current is not None:
        say(f"New plans of this queue go to version {current.text}: this worker, without a version, gets none of them.")

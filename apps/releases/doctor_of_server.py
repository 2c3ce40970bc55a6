"""The rows of `plan doctor` about versions of workers."""

from __future__ import annotations

from contextlib import suppress

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.apps.releases.at_versions import AtVersion, all_versions
from plansurvive.client.doctor import Finding, Verdict
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.versions.routing import BadVersion, NoVersions, current_of, names, routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version


async def findings(settings: Settings, connection: Connection) -> list[Finding]:
    """A row for each version that lacks workers."""
    texts = await unserved(connection.client, settings.task_queue)
    return [Finding(subject="versions", verdict=Verdict.WARNING, text=text) for text in texts]


async def unserved(client: Client, queue: str) -> list[str]:
    """One text for each version that lacks workers, with what to do; empty as well if the server has no versions."""
    texts: list[str] = []
    with suppress(NoVersions, RPCError):
        current = await current_of(client, queue)
        for name in await names(client):
            with suppress(BadVersion):  # the deployment was deleted meanwhile
                found = await all_versions(client, queue, await routing(client, name), of_queue=True)
                texts += [text for each in found if (text := lacking(each, current))]
    return texts


def lacking(found: AtVersion, current: Version | None) -> str:
    """What is wrong with a version, and what to do; empty: nothing. `current`: what the queue's new plans go to."""
    name = found.version.text
    if found.workers or found.version.build == UNVERSIONED:
        return ""
    if found.version == current:
        return (
            f"new plans go to {name}, which no worker runs, so they wait: start a worker of it, "
            "or take the release back with `plan worker rollback`"
        )
    if not found.is_stuck:
        return ""
    count = found.plans + found.others
    waits = "1 plan or agent waits" if count == 1 else f"{count} plans and agents wait"
    return (
        f"{waits} for a worker of {name}, and there is none: start one, "
        f"or move them to the current version with `plan worker drain {name} --move`"
    )

"""The rows of `plan doctor` about versions of workers."""

from __future__ import annotations

from plansurvive.apps.releases.unserved import unserved
from plansurvive.client.doctor import Finding, Verdict
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings


async def findings(settings: Settings, connection: Connection) -> list[Finding]:
    """A row for each version that lacks workers."""
    texts = await unserved(connection.client, settings.task_queue)
    return [Finding(subject="versions", verdict=Verdict.WARNING, text=text) for text in texts]

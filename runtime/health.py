"""`python -m runtime.health`: a container health check. Exit code 0 while a worker on this host polls its queue.

It asks the server, so a worker that has lost its connection is unhealthy.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys

from plans.errors import PlanError
from runtime.connect import find
from runtime.settings import Settings
from runtime.task_queues import WORKER, listeners


async def trouble(settings: Settings) -> str | None:
    """Why the server sees no worker of this host; None if it does."""
    connection = await find(settings)
    if connection is None:
        return "no Temporal server is running"
    mine = [
        identity
        for identity in await listeners(connection.client, settings.task_queue)
        if identity.startswith(WORKER) and identity.endswith(f"@{socket.gethostname()}")
    ]
    return None if mine else f"no worker of this machine listens to queue '{settings.task_queue}'"


def main() -> None:
    """Run the check, print the problem, and exit."""
    try:
        wrong = asyncio.run(trouble(Settings.read(os.environ)))
    except PlanError as error:
        wrong = f"{error.code}: {error.message}"
    if wrong:
        print(wrong, file=sys.stderr)
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""`python -m runtime.health`: exit code 0 while a worker of ours on this machine listens to its queue, else 1.

For the health check of a container. It asks the server, so a worker that lost its connection is not healthy.
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
    """Why no worker of this machine can be found at the server; None when all is well."""
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
    """Check, say what is wrong, and leave with the exit code."""
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

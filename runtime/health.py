"""`python -m plansurvive.runtime.health`: a container health check.

Exit code 0 while a worker on this host polls its queue. It asks the server, so a worker that has lost its connection is
unhealthy. With `--alive` it is healthy as well while the server is away: a restart would not mend that, and would lose
the plans in the worker's cache.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys

from temporalio.service import RPCError

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import find
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import WORKER, listeners


async def trouble(settings: Settings, *, alone: bool = False) -> str | None:
    """Why the server sees no worker of this host; None if it does. `alone`: also None if there is no server to ask."""
    try:
        connection = await find(settings)
    except NotConnected:
        if not alone:
            raise
        connection = None
    if connection is None:
        return None if alone else "no Temporal server is running"
    try:
        found = await listeners(connection.client, settings.task_queue)
    except RPCError as error:
        return None if alone else f"the Temporal server at {connection.address} does not answer: {error.message}"
    mine = [each for each in found if each.startswith(WORKER) and each.endswith(f"@{socket.gethostname()}")]
    return None if mine else f"no worker on this machine polls queue '{settings.task_queue}'"


def main() -> None:
    """Run the check, print the problem, and exit."""
    try:
        wrong = asyncio.run(trouble(Settings.read(os.environ), alone="--alive" in sys.argv[1:]))
    except PlanError as error:
        wrong = f"{error.code}: {error.message}"
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        print(wrong, file=sys.stderr)
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

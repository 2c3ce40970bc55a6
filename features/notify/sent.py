"""Which messages this machine has sent, on disk: a worker that dies before it could say so does not send them again.

What a crash leaves is the moment between the receiver's answer and this record; the id of the delivery tells receivers
that the second one is the same.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

DIRECTORY = "notified"
KEPT_SECONDS = 7 * 86_400.0
"""Longer than any message is tried."""


class Sent:
    """The records in a state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._directory = state_dir / DIRECTORY

    def has(self, name: str) -> bool:
        """Whether the message was sent. `name`: id of the delivery, with the number of the receiver."""
        return (self._directory / name).exists()

    def note(self, name: str) -> None:
        """Record that it was sent; a disk that is full does not make a message fail that was sent."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._forget()
        except OSError:
            return

    def _forget(self) -> None:
        before = time.time() - KEPT_SECONDS
        for path in self._directory.iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

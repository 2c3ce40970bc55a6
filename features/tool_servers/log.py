"""What the program of a tool server prints to its standard error: the end of it, and a file of limited size.

Secrets are masked. The file is for people; nothing of it reaches a plan, but for the last lines in the error of a
server that does not start.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from plansurvive.activities.values.errors import one_line
from plansurvive.activities.values.redaction import Secrets

MAX_FILE = 1024 * 1024
"""Bytes of the file; it then becomes `NAME.log.1`, and the one before it is deleted."""
MAX_END = 4_000
PER_SECOND = 16_384
"""Bytes per second that are kept for ever; a file's length may come at once."""
FOLDER = "mcp"
"""Directory of these files in the state directory."""

_log = logging.getLogger(__name__)


class ServerLog:
    """The log of one server. Never raises: a full disk ends no connection."""

    def __init__(self, state: Path, server: str, secrets: Secrets) -> None:
        self.path = state / FOLDER / f"{server}.log"
        self._secrets, self._stream = secrets, secrets.out_of_stream()
        self._end, self._is_broken = b"", False
        self._left, self._at, self._dropped = float(MAX_FILE), time.monotonic(), 0

    def add(self, data: bytes) -> None:
        """Add output."""
        masked = self._stream.add(data)
        self._end = (self._end + masked[-MAX_END:])[-MAX_END:]
        now = time.monotonic()
        self._left = min(float(MAX_FILE), self._left + (now - self._at) * PER_SECOND)
        self._at = now
        if len(masked) > self._left:
            self._dropped += len(masked)
            return
        self._left -= len(masked)
        if self._dropped:
            masked, self._dropped = f"-- {self._dropped:,} bytes left out\n".encode() + masked, 0
        self._write(masked)

    def note(self, text: str) -> None:
        """Add a line of our own."""
        self.add(f"-- {text}\n".encode())

    def last_lines(self, most: int = 5) -> str:
        """The last lines of the output, for an error."""
        lines = (self._end + self._stream.rest()).decode("utf-8", "replace").splitlines()
        return one_line(" ".join([line for line in lines if line.strip() and not line.startswith("-- ")][-most:]))

    def _write(self, data: bytes) -> None:
        if self._is_broken or not data:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size + len(data) > MAX_FILE:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(data[-MAX_FILE:])
        except OSError as error:
            self._is_broken = True
            _log.warning("%s cannot be written: %s", self.path, error.strerror)

"""The key ring of a running process, which notices a changed ring without a restart.

A file is looked at with each use, at most once a second; a command is run again every 30 seconds. For a key id that is
not known both are read at once, a command not more often than each second. While the ring cannot be read the keys known
so far stay in use, and the log says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from plansurvive.features.keys.ring import BadRing, Key, KeyRing
from plansurvive.features.keys.source import Source
from plansurvive.runtime.errors import KeyMissing

RETRY_SECONDS = 1.0
"""Shortest time between two runs of a command for a key that is not known."""
_log = logging.getLogger(__name__)


class LiveRing:
    """The keys of a source, as they are now. Safe to use from several threads."""

    def __init__(self, source: Source, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Reads the ring. Raises BadRing."""
        self.source = source
        self._clock, self._lock = clock, threading.Lock()
        self._stamp = source.stamp()
        self._ring = source.read()
        self._looked = self._read_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """Whether the ring need not be looked at yet. Looking at a file is cheap; a command should run in a thread."""
        return time.monotonic() - self._looked < self.source.seconds

    def refresh(self) -> KeyRing:
        """The ring, read again if it may have changed."""
        if not self.is_fresh:
            with self._lock:
                if not self.is_fresh:
                    self._look()
        return self._ring

    def current(self) -> Key:
        """The key that encrypts now."""
        return self.refresh().current(self._clock())

    def key(self, name: str) -> Key:
        """The key with an id. Raises KeyMissing, which another try may not: somebody may add it."""
        found = self.refresh().by_id.get(name) or self._read_for(name).by_id.get(name)
        if found is None:
            raise KeyMissing.of(name, str(self.source), len(self._ring.keys))
        return found

    def _look(self) -> None:
        stamp = self.source.stamp()
        if stamp is None or stamp != self._stamp:
            self._read(stamp)
        self._looked = time.monotonic()

    def _read_for(self, name: str) -> KeyRing:
        with self._lock:
            stamp = self.source.stamp()
            is_due = time.monotonic() - self._read_at >= RETRY_SECONDS if stamp is None else stamp != self._stamp
            if name not in self._ring.by_id and is_due:
                self._read(stamp)
        return self._ring

    def _read(self, stamp: tuple[int, ...] | None) -> None:
        self._read_at = time.monotonic()
        try:
            self._ring, self._stamp = self.source.read(), stamp
        except BadRing as error:
            _log.warning("the key ring cannot be read again, so the keys known so far stay in use: %s", error.message)

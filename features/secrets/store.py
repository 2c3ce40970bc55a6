"""The secrets of a worker: their values when a call needs them, and every value it has had, to be masked in texts.

A variable or file is read again for each call, so that a plan which waited gets what the secret is then; a command is
run again after COMMAND_FRESH. Old values stay masked until the worker ends. Safe to use from several threads.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plansurvive.features.secrets.permissions import REFUSED
from plansurvive.features.secrets.secrets_file import COMMAND, Entry, allowed, file_of, read_entries
from plansurvive.features.secrets.sources import value_of
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings

COMMAND_FRESH = 30.0
"""Seconds for which what a command printed is used again."""
MAX_SEEN = 1_000
"""Values that are remembered to be masked; the oldest are forgotten."""
_log = logging.getLogger(__name__)


class SecretStore:
    """The secrets that a secrets.toml names."""

    def __init__(self, entries: Mapping[str, Entry], directory: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.entries, self._directory, self._environ = entries, directory, environ
        self._lock = threading.Lock()
        self._seen: dict[str, None] = {}
        self._printed: dict[str, tuple[float, str]] = {}
        self.version = 0
        """Grows with each new value."""

    def __repr__(self) -> str:
        return f"SecretStore({', '.join(self.entries)})"

    @property
    def seen(self) -> list[str]:
        """Every value that was read so far."""
        with self._lock:
            return list(self._seen)

    def value(self, name: str) -> str:
        """What a secret is now. Raises ToolError SECRET_MISSING; KeyError if there is none of that name."""
        entry = self.entries[name]
        is_command = entry.kind == COMMAND
        if is_command and name in self._printed and time.monotonic() - self._printed[name][0] < COMMAND_FRESH:
            return self._printed[name][1]
        found = value_of(name, entry, self._directory, self._environ)
        if is_command:
            self._printed[name] = time.monotonic(), found
        with self._lock:
            if found not in self._seen:
                self._seen[found] = None
                self.version += 1
                if len(self._seen) > MAX_SEEN:
                    del self._seen[next(iter(self._seen))]
        return found

    def values(self, names: Collection[str], tool: ToolSpec) -> dict[str, str]:
        """The values of secrets for a call of a tool. Raises ToolError SECRET_REFUSED, SECRET_MISSING."""
        wrong = [name for name in names if name not in self.entries or tool.name not in self.entries[name].tools]
        if wrong:
            text = f"{tool.name} may not use the secret {wrong[0]} on this worker; secrets.toml says which tools may"
            raise ToolError(REFUSED, text)
        return {name: self.value(name) for name in dict.fromkeys(names)}

    def allowed(self, spec: ToolSpec) -> ToolSpec:
        """The spec of a tool with the secrets that it may use."""
        return allowed(spec, self.entries)

    def read_all(self) -> dict[str, str]:
        """Read every secret, so that it is masked before it is first used. By name, why one could not be read."""
        if not self.entries:
            return {}
        with ThreadPoolExecutor(min(8, len(self.entries)), thread_name_prefix="secret") as threads:
            found = threads.map(self._trouble, self.entries)
        return {name: text for name, text in zip(self.entries, found, strict=True) if text}

    def _trouble(self, name: str) -> str:
        try:
            self.value(name)
        except ToolError as error:
            return error.message
        return ""


_stores: dict[tuple[str, int, int], SecretStore] = {}


def store_of(settings: Settings) -> SecretStore:
    """The store of the settings' secrets.toml: one per process and content. Raises SettingError.

    Every secret is read once; what cannot be read is logged, and told again to the calls that need it.
    """
    path = file_of(settings)
    try:
        status = path.stat()
        mark = str(path), status.st_mtime_ns, status.st_ino
    except OSError:
        mark = str(path), 0, 0
    if mark not in _stores:
        store = SecretStore(read_entries(settings), path.parent)
        for trouble in store.read_all().values():
            _log.warning("%s", trouble)
        _stores[mark] = store
    return _stores[mark]

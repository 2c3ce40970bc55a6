"""Adding a key to the file of a key ring."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from plansurvive.features.keys.ring import Key, new_key, parse, written
from plansurvive.features.keys.source import FileSource
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked

AHEAD = timedelta(seconds=60)
"""How long every process has to notice a new key before the first one encrypts with it."""

LOCK_SECONDS = 10.0
"""How long another command may be adding a key."""


def add_key(path: Path, ahead: timedelta = AHEAD, now: datetime | None = None) -> Key:
    """Add a new key, which encrypts after `ahead`; the first key of a ring at once. What is there stays as it is.

    Raises BadRing if the file holds anything but a key ring, or others can read it; OSError if it cannot be written.
    """
    now = now or datetime.now(UTC)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock"), LOCK_SECONDS):
        before = "".join(map(written, FileSource(path).read().keys)) if path.exists() else ""
        key = new_key(now, now + ahead if before else now)
        text = f"{before}{written(key)}"
        parse(text)
        write_whole(path, text.encode())
    return key

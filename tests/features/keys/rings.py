"""Key rings for tests: written to files as `plan keys new` writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from plansurvive.features.keys.live import LiveRing
from plansurvive.features.keys.ring import Key, new_key, written
from plansurvive.features.keys.source import FileSource

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def key(since: datetime = LONG_AGO) -> Key:
    """A random key."""
    return new_key(since, since)


def ring_file(path: Path, *keys: Key) -> Path:
    """A file with the keys, replaced at once as an editor does."""
    aside = path.with_name(f".{path.name}")
    aside.write_text("".join(map(written, keys)))
    aside.chmod(0o600)
    aside.replace(path)
    return path


def live(path: Path) -> LiveRing:
    """The ring of a file, looked at with each use."""
    return LiveRing(FileSource(path, seconds=0.0))

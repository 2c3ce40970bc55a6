"""The files of results that are kept for later runs, for `plan prune`. A file that is used is touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plansurvive.features.cache.settings import CacheSettings
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import DAY, Unused

FOLDERS = ("entries", "contents", "last", "plans")
"""Of the directory `cache`. Its key stays: without it, all that is kept is lost."""


def _files(settings: Settings) -> Iterator[Path]:
    """All files of kept results; those that were not used for long may go, in any order."""
    for name in FOLDERS:
        folder = settings.state_dir / "cache" / name
        yield from (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


UNUSED = Unused(_files, lambda settings: settings.of(CacheSettings).cache_days * DAY)

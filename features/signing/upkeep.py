"""The notes of used due times and starts, for `plan prune`: they go when no signature can count for them any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plansurvive.features.signing.schedule_book import KEPT_SECONDS, USED
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Unused


def _files(settings: Settings) -> Iterator[Path]:
    folder = settings.state_dir / USED
    yield from (path for path in folder.glob("*") if path.is_file() and not path.is_symlink())


UNUSED = Unused(_files, lambda _: KEPT_SECONDS, are_records=True)

"""Atomic file writes: write to a temporary file, then rename it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes, prefix: str = ".", *, durable: bool = True) -> None:
    """Replace the file atomically, through a temporary file beside it; mode 0600.

    `durable`: synced to disk on return, so the file survives a crash of the machine; costs two fsyncs, a few
    milliseconds. Without it, such a crash may leave an empty file, which readers must detect. Raises OSError, after
    removing the temporary file; a killed process leaves `prefix`*.tmp behind.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(descriptor)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # as of a full disk: say where
            error.filename = str(path)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    """Sync a rename to disk: the directory holds the name."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

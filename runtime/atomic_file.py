"""Files that appear with all their content or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes, prefix: str = ".", *, durable: bool = True) -> None:
    """Write the file through a temporary one beside it, mode 0600. Raises OSError, and leaves nothing then.

    `durable`: on disk when this returns, so that it survives a crash of the machine; two fsyncs, some milliseconds.
    Without it a crash of the machine may leave an empty file, which the reader must be able to recognise. A killed
    writer leaves `prefix`*.tmp.
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    """Put a rename on disk: it is the directory that holds the name."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

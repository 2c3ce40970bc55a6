"""Values that `plan prune` holds while it makes sure that nobody has wanted them meanwhile: beside their place, hidden.

A prune that is killed then leaves them there. Readers look there too, and the next prune puts them back.

Rejected: a lock between prune and writers, which would be in the way of each step for a rare command.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def aside_of(path: Path) -> Path:
    """Where a value is held."""
    return path.with_name(f".{path.name}.gone")


def read_held(path: Path) -> bytes:
    """A stored value, held or not; it may be put back meanwhile. Raises FileNotFoundError, IsADirectoryError."""
    for place in (path, aside_of(path)):
        with suppress(FileNotFoundError):
            return place.read_bytes()
    return path.read_bytes()


def put_back(directory: Path) -> None:
    """Put back what an earlier prune held when it was killed: a plan may have wanted it at that moment."""
    for held in directory.glob("??/.*.gone"):
        with suppress(FileNotFoundError):  # another prune has put it back, or removed it
            restore(held, held.with_name(held.name.removeprefix(".").removesuffix(".gone")))


def restore(held: Path, path: Path) -> None:
    """Move a held value to its place, unless somebody has written it again: that file is younger, and so is kept.

    A rename would replace it by the held one, which then is old enough to be removed. Raises FileNotFoundError.
    """
    try:
        os.link(held, path)  # unlike a look and a rename, one step
    except FileExistsError:
        pass
    except PermissionError:  # a file system without hard links
        if not path.exists():
            held.rename(path)
            return
    held.unlink()

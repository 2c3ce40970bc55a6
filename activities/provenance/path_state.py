"""Reads and restores the state of a path in a workspace, in the format defined by `plans.files.changes`."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import xxhash

from plansurvive.activities.workspace.atomic_swap import put_new
from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.activities.workspace.contents import token, write_beside
from plansurvive.activities.workspace.file_names import native
from plansurvive.activities.workspace.workspace import DirectoryEntry, Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.changes import FOLDER

MAX_HASHED = 64 * 1024 * 1024
"""Files that commands leave are not hashed if they are larger than this many bytes: there may be many of them."""


def state_of(workspace: Workspace, path: str, most: int | None = None) -> str | None:
    """The state of a path; empty if nothing is there, None if it cannot be determined or has more than `most` bytes."""
    try:
        with workspace.recorded(path) as place:
            return state_at(place, most)
    except ToolError as error:
        return "" if error.code in ("NOT_FOUND", "NOT_REGULAR") else None
    except OSError:
        return None


def state_at(place: DirectoryEntry, most: int | None = None) -> str | None:
    """The state of an opened place; None if it has more than `most` bytes. Raises OSError when it cannot be read."""
    if place.status is None:
        return ""
    if stat.S_ISDIR(place.status.st_mode):
        return FOLDER
    if most is not None and place.status.st_size > most:
        return None
    return token(place.name, place.directory)


def kept_state(workspace: Workspace, path: str, preimages: ContentStore) -> str | None:
    """The state of a path, with its content saved in the store if it fits."""
    data = content_of(workspace, path, preimages.max_file)
    if data is None or not preimages.keep(data):
        return state_of(workspace, path, MAX_HASHED)
    return xxhash.xxh3_128_hexdigest(data)


def content_of(workspace: Workspace, path: str, most: int) -> bytes | None:
    """Content of a regular file of at most `most` bytes; None otherwise."""
    with suppress(ToolError, OSError), workspace.recorded(path) as place:
        if place.is_regular:
            descriptor = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place.directory)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(most + 1)
            return data if len(data) <= most else None
    return None


def put(place: DirectoryEntry, target: str, mode: int | None, preimages: ContentStore) -> None:
    """Restore a place to a state. Raises ToolError NOT_KEPT when the content is not stored, OSError on failure."""
    if target == "":
        _remove(place)
        return
    if target == FOLDER:
        place.make_folders()
        os.mkdir(place.name, dir_fd=place.directory)
        return
    data = preimages.get(target) if not target.startswith("link:") else b""
    if data is None:
        raise ToolError("NOT_KEPT", f"the content of '{place.path}' before is no longer stored")
    place.make_folders()
    # The same name each time, under the lock of the path: what a killed undo left there is replaced by the next.
    temporary = f".plans-undo-{xxhash.xxh3_64_hexdigest(os.fsencode(place.name))}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=place.directory)
    if target.startswith("link:"):
        os.symlink(native(target.removeprefix("link:")), temporary, dir_fd=place.directory)
    else:
        write_beside(place, temporary, [data])
        if mode is not None:
            os.chmod(temporary, mode & 0o777, dir_fd=place.directory)
    if place.status is None:
        put_new(temporary, place.name, place.directory)
    else:
        os.rename(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    os.fsync(place.directory)


def _remove(place: DirectoryEntry) -> None:
    if place.status is None:
        return
    if stat.S_ISDIR(place.status.st_mode):
        os.rmdir(place.name, dir_fd=place.directory)
    else:
        os.unlink(place.name, dir_fd=place.directory)
    os.fsync(place.directory)

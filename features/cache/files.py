"""Files for results: as they are now, as a call left them, and re-created from the store.

What is re-created obeys the rules of a file tool's change: one call at a time, exactly once, refused where the file
differs from what the run knows, and in place of a file that the run does not know only if the plan owns it or, for a
file tool, a person approved the call. Where that is not so, the tool runs, and decides as it always does.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import xxhash

from plansurvive.activities.tools.file_change import Change, NewContent, changing
from plansurvive.activities.tools.search import find
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.activities.workspace.contents import check_replaceable, stamp_at
from plansurvive.activities.workspace.workspace import DirectoryEntry, Workspace
from plansurvive.features.cache.entries import MAX_FILES, Output
from plansurvive.features.cache.store import MAX_CONTENT
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp, stamp_of
from plansurvive.plans.files.owned import is_owned

_OF_THE_LOG = ("EFFECTS_UNAVAILABLE", "OUTCOME_UNKNOWN", "NO_SPACE")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unkept(Exception):
    """The result of a call cannot be kept for later runs; the text says why."""


class Unusable(Exception):
    """A kept result cannot be taken. `args[0]`: a stable word that says why."""


def stamps_now(workspace: Workspace, paths: Iterable[str]) -> dict[str, Stamp | None]:
    """The files as they are; None for one that is not there, is not a regular file or cannot be reached."""
    return {path: _stamp(workspace, path) for path in paths}


def listed(workspace: Workspace, patterns: Sequence[str]) -> dict[str, Stamp | None]:
    """All files that one of the patterns fits. Raises Unkept if they are too many, ToolError if a pattern is bad."""
    paths: dict[str, None] = {}
    for pattern in patterns:
        paths |= dict.fromkeys(find(workspace, pattern))
        if len(paths) > MAX_FILES:
            raise Unkept(f"cache.reads fits more than {MAX_FILES} files")
    return stamps_now(workspace, paths)


def left(
    context: ToolContext, contents: ContentStore, ended: int, paths: Mapping[str, Stamp | None]
) -> list[Output]:  # fmt: skip
    """What a call left at these paths, with the contents in the store. `ended`: when it had ended, in ns since 1970.

    Raises Unkept if it cannot be re-created exactly, or may be somebody else's.
    """
    if len(paths) > MAX_FILES:
        raise Unkept(f"it left more than {MAX_FILES} files")
    return [_left(context, contents, ended, path, stamp) for path, stamp in sorted(paths.items())]


@dataclass(frozen=True)
class Recreation:
    """Re-creates what an earlier call left, on behalf of one attempt."""

    context: ToolContext
    contents: ContentStore
    keyed: bool
    """The call is a file tool's: an approval of it covers the files that it replaces."""

    def check(self, outputs: Sequence[Output]) -> None:
        """Raise Unusable unless all can be re-created: their contents are stored, and nothing is in their way."""
        for output in outputs:
            if output.kind == "file":
                content(self.contents, output)
        for output in outputs:
            try:
                with self.context.workspace.file(f"./{output.path}") as place:
                    self._check_place(place, output, stamp_at(place))
            except (ToolError, OSError):
                raise Unusable("conflict") from None

    def make(self, outputs: Sequence[Output], value: object) -> None:
        """Re-create them. Raises Unusable, or ToolError of the effect log; some may have been re-created then."""
        for output in outputs:
            try:
                with changing(self.context, f"./{output.path}") as change:
                    stamp = self._put(change, output, value)
            except (ToolError, OSError) as error:
                if isinstance(error, ToolError) and error.code in _OF_THE_LOG:
                    raise
                raise Unusable("conflict") from None
            self.context.files_written[output.path] = stamp if output.known else None

    def _put(self, change: Change, output: Output, value: object) -> Stamp | None:
        if _is_there(change.place, output, change.now):
            return change.now
        change.check()
        self._check_place(change.place, output, change.now)
        if output.kind == "directory":
            change.make_directory(value)
            return None
        data = content(self.contents, output)
        change.write(NewContent(self.context, len(data), data), value, output.mode)
        return stamp_of(data, linked=change.place.linked).model_copy(update={"made": True})

    def _check_place(self, place: DirectoryEntry, output: Output, now: Stamp | None) -> None:
        """Raise ToolError or Unusable if an output may not be put at its place unless the tool decides so."""
        call, is_folder = self.context.call, output.kind == "directory"
        if _is_there(place, output, now):
            return
        place.check_writing(call, is_folder=is_folder)
        if is_folder and place.status is not None:
            raise Unusable("conflict")
        check_replaceable(place)
        seen = call.stamps.get(place.path)
        is_known = seen is not None and seen.state != "deleted"
        if place.status is None:
            if is_known:  # and somebody has deleted it
                raise Unusable("conflict")
            return
        by_tool = call.approved and self.keyed
        if not (call.may_replace(place.path) or by_tool or is_owned(call.owns, "/".join(place.real_parts))):
            raise Unusable("conflict")


def content(contents: ContentStore, output: Output) -> bytes:
    """The content of an output. Raises Unusable: `gone`, or `damaged` if it was altered; it is removed then."""
    data = contents.get(output.hash)
    if data is None or hashlib.sha256(data).hexdigest() != output.sha256:
        raise Unusable("damaged" if contents.drop(output.hash) else "gone")
    return data


def _is_there(place: DirectoryEntry, output: Output, now: Stamp | None) -> bool:
    if output.kind == "directory":
        return place.is_directory
    return now is not None and (now.hash, now.size) == (output.hash, output.size)


def _left(context: ToolContext, contents: ContentStore, ended: int, path: str, stamp: Stamp | None) -> Output:
    try:
        with context.workspace.recorded(path) as place:
            status = place.status
            if status is None:
                raise Unkept(f"'{path}' was removed since")
            mode = stat.S_IMODE(status.st_mode) & 0o777
            if place.is_directory:
                return Output(path=path, kind="directory", mode=mode)
            if not place.is_regular or status.st_size > MAX_CONTENT:
                what = "is larger than 64 MiB" if place.is_regular else "is not a regular file"
                raise Unkept(f"'{path}' {what}")
            descriptor = os.open(place.name, _READ, dir_fd=place.directory)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(MAX_CONTENT + 1)
                after = os.fstat(descriptor)
    except (ToolError, OSError) as error:
        raise Unkept(f"'{path}' cannot be read: {error}") from None
    digest = xxhash.xxh3_128_hexdigest(data)
    if after.st_ctime_ns > ended or (stamp is not None and (stamp.hash, stamp.size) != (digest, len(data))):
        raise Unkept(f"'{path}' was changed since")
    if not contents.keep(data):
        raise Unkept(f"'{path}' could not be stored")
    sha256 = hashlib.sha256(data).hexdigest()
    return Output(path=path, hash=digest, sha256=sha256, size=len(data), mode=mode, known=stamp is not None)


def _stamp(workspace: Workspace, path: str) -> Stamp | None:
    try:
        with workspace.file(f"./{path}") as place:
            return stamp_at(place)
    except (ToolError, OSError):
        return None

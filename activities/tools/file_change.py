"""Changes one file on behalf of one tool call: locked, checked against the file's stamp, exactly once.

    with changing(context, path) as change:
        if change.earlier: return it     # an earlier attempt made this change
        change.check()                   # CONFLICT if the file differs from its stamp
        change.write([data], value)

The new content is written to a temporary file in the same directory before the effect is logged. Then the two names
are swapped, the file swapped out is compared with the one that should be replaced, and the swap is undone if another
program saved in between. The run's own changes are not conflicts: concurrent steps change a file one after the other.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import xxhash

from plansurvive.activities.tools import conflicts
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.atomic_swap import exchange, put_new
from plansurvive.activities.workspace.contents import (
    MAX_FILE_BYTES,
    check_replaceable,
    has_content,
    read_bytes,
    stamp_at,
    token,
    too_large,
    write_beside,
)
from plansurvive.activities.workspace.effect_log import Effect, Kind, run_of
from plansurvive.activities.workspace.effect_recovery import settle
from plansurvive.activities.workspace.locks import locked
from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.workspace import DirectoryEntry
from plansurvive.plans.errors import MAY_HAVE_HAPPENED, OUTCOME_UNKNOWN, ToolError
from plansurvive.plans.file_stamps import Stamp, stamp_of
from plansurvive.runtime.value_store import StoredText


@dataclass(frozen=True)
class NewContent:
    """The new content of a file: held in memory, or read from the value store in pieces."""

    context: ToolContext
    length: int
    """In bytes."""
    source: bytes | StoredText

    @classmethod
    def of(cls, content: str | StoredText, context: ToolContext) -> NewContent:
        """The content, a text as UTF-8. Raises ToolError INVALID_ARGS if that is not valid Unicode."""
        if isinstance(content, StoredText):
            return cls(context, content.stream.bytes, content)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            text = "the text is not valid Unicode (it contains lone surrogates); remove them"
            raise ToolError("INVALID_ARGS", text) from None
        return cls(context, len(data), data)

    def check_length(self, place: DirectoryEntry) -> None:
        """Raise ToolError FILE_TOO_LARGE. A stored text has the limit of what may be stored, PLANS_OUTPUT_MB."""
        if isinstance(self.source, bytes) and self.length > MAX_FILE_BYTES:
            raise too_large(place.path)

    def pieces(self) -> Iterator[bytes]:
        """The content in order. Raises InterruptedError when the call is cancelled meanwhile."""
        for piece in [self.source] if isinstance(self.source, bytes) else self.source.pieces():
            if self.context.cancelled:
                raise InterruptedError("the call was cancelled")
            yield piece

    def is_that_of(self, change: Change) -> bool:
        """Whether the file has this content already."""
        place = change.place
        if isinstance(self.source, bytes):
            return change.data == self.source
        is_as_long = place.is_regular and place.status is not None and place.status.st_size == self.length
        return is_as_long and has_content(place, self.pieces())


@dataclass
class Change:
    """A locked file; effects that dead workers left open are already settled."""

    context: ToolContext
    place: DirectoryEntry
    earlier: Effect | None = None
    """This call's own effect, completed by an earlier attempt."""
    data: bytes | None = None
    """The content; None if the file is missing, not a regular file or larger than MAX_FILE_BYTES."""
    now: Stamp | None = None
    """The stamp of the file as it is now; None if it is not a regular file."""

    def check(self) -> None:
        """Raise CONFLICT if the file differs from its stamp, unless the run's own steps made the difference.

        A file without a stamp cannot conflict.
        """
        seen = self.context.call.stamps.get(self.place.path)
        if seen is None or seen.state == "deleted" or not seen.has_changed(self.now):
            return
        if self._as_left_by_the_run(seen).has_changed(self.now):
            before = self.context.effects.preimages.get(seen.hash)
            raise conflicts.conflict(self.place, seen, before, self.data)

    def check_exists(self) -> None:
        """Raise CONFLICT if the file is missing, and the run has seen it before; also if the run itself deleted it."""
        seen = self.context.call.stamps.get(self.place.path)
        if seen is not None and self.place.status is None:
            raise conflicts.conflict(self.place, seen, None, None)

    def write(self, new: NewContent, value: Any, mode: int | None = None) -> Stamp:
        """Replace the content; returns its full hash and size. Raises CONFLICT if another program saves the file at
        the same moment. `mode`: its permissions; None: those of the replaced file."""
        check_replaceable(self.place)
        self._keep_preimage()
        self.place.make_folders()
        self.context.fault("before_effect")
        name = self._temporary()
        try:
            written = write_beside(self.place, name, new.pieces())
            if mode is not None:
                os.chmod(name, mode, dir_fd=self.place.directory)
        except FileNotFoundError:  # its directory was removed
            raise conflicts.meanwhile(self.place, gone=True) from None
        self.context.fault("after_temporary")
        try:
            effect = self._begin("write", name, written.hash, written.size, value)
        except BaseException:
            self._remove(name)
            raise
        try:
            self._swap(effect)
        except ToolError:  # after any other error the effect stays open, and the next change of the file settles it
            self.context.effects.log.forget(effect)  # first: without the file, recovery takes it for made
            self._remove(name)
            raise
        self.context.fault("after_swap")
        self._end(effect)
        return written

    def delete(self, value: Any) -> None:
        """Delete the file or the symbolic link. Raises CONFLICT as `write` does."""
        self._keep_preimage()
        self.context.fault("before_effect")
        name, place = self._temporary(), self.place
        effect = self._begin("delete", name, "", 0, value)
        os.rename(place.name, name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
        if token(name, place.directory) != effect.before:
            with suppress(FileExistsError):
                put_new(name, place.name, place.directory)
            self.context.effects.log.forget(effect)
            raise conflicts.meanwhile(place)
        self.context.fault("after_swap")
        os.fsync(place.directory)
        self.context.effects.log.settle(effect, "done")
        self._end(effect)

    def make_directory(self, value: Any) -> None:
        """Create the directory and its missing parents."""
        self.context.fault("before_effect")
        effect = self._begin("directory", "", "", 0, value)
        self.place.missing = (*self.place.missing, self.place.name)
        self.place.make_folders()
        self.context.fault("after_swap")
        self._end(effect)

    def _as_left_by_the_run(self, seen: Stamp) -> Stamp:
        """The stamp of the present content if the run's own steps led from `seen` to it; otherwise `seen`."""
        if self.now is None:
            return seen
        run, root = run_of(self.context.call.key), self.context.workspace.root
        if not self.context.effects.log.leads(run, root, "/".join(self.place.real_parts), seen.hash, self.now.hash):
            return seen
        return self.now.model_copy(update={"state": seen.state, "linked": seen.linked})

    def _begin(self, kind: Kind, name: str, after: str, size: int, value: Any) -> Effect:
        """Log the intent before the change is made."""
        path, before = "/".join(self.place.real_parts), self._before()
        root = self.context.workspace.root
        effect = Effect(self.context.call.key, kind, root, path, name, before, after, size, value)
        self.context.effects.log.begin(effect)
        self.context.fault("after_intent")
        return effect

    def _before(self) -> str:
        """What is to be replaced: exactly the content that was checked, so that a save since then is noticed."""
        if self.now is not None:
            return self.now.hash
        return token(self.place.name, self.place.directory) if self.place.status is not None else ""

    def _swap(self, effect: Effect) -> None:
        place, directory, name = self.place, self.place.directory, effect.temporary
        try:
            if not effect.before:
                return put_new(name, place.name, directory)
            if exchange(name, place.name, directory):
                return self._verify(effect)
        except (FileExistsError, FileNotFoundError) as error:
            raise conflicts.meanwhile(place, gone=isinstance(error, FileNotFoundError)) from None
        if token(place.name, directory) != effect.before:
            raise conflicts.meanwhile(place)
        return os.rename(name, place.name, src_dir_fd=directory, dst_dir_fd=directory)

    def _verify(self, effect: Effect) -> None:
        """Raise CONFLICT, and undo the swap, if the file swapped out is not the expected one.

        Another program then saved it between our check and our swap.
        """
        name, place = effect.temporary, self.place
        if token(name, place.directory) == effect.before:
            return
        exchange(name, place.name, place.directory)
        if token(name, place.directory) != effect.after:  # saved again since the swap: that latest version wins
            exchange(name, place.name, place.directory)
        raise conflicts.meanwhile(place)

    def _end(self, effect: Effect) -> None:
        if effect.temporary:
            self._remove(effect.temporary)
        os.fsync(self.place.directory)
        self.context.fault("after_effect")
        self.context.effects.log.settle(effect, "done")
        self.context.fault("after_done")

    def _keep_preimage(self) -> None:
        preimages = self.context.effects.preimages
        if self.data is not None:
            preimages.keep(self.data)
        if self.now is not None and self.now.size > preimages.max_file:
            text = f"{shown(self.place.path)} had {self.now.size} bytes, too many to keep: plan undo cannot restore it"
            self.context.warn(text)

    def _temporary(self) -> str:
        return f"{self._prefix()}{secrets.token_hex(6)}.tmp"

    def _prefix(self) -> str:
        return f".plans-{xxhash.xxh3_64_hexdigest(self.context.call.key.encode())}-"

    def sweep(self) -> None:
        """Remove temporary files of killed attempts of this call; their effects are already settled."""
        if self.context.again and not self.place.missing:
            with os.scandir(self.place.directory) as entries:
                left = [entry.name for entry in entries if entry.name.startswith(self._prefix())]
            for name in left:
                self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.place.directory)


@contextmanager
def changing(context: ToolContext, path: str, *, follow: bool = True) -> Iterator[Change]:
    """Lock the file for one change. Raises the path's errors, FILE_BUSY, EFFECTS_UNAVAILABLE or OUTCOME_UNKNOWN."""
    effects, workspace = context.effects, context.workspace
    with workspace.file(path, follow=follow) as first:
        real = "/".join(first.real_parts)
    context.fault("before_lock")
    with (
        locked(effects.locks, workspace.root, real, lambda: context.cancelled),
        workspace.file(path, follow=follow) as place,
    ):
        # The path was resolved before the lock; a link on the way may have been redirected since.
        if "/".join(place.real_parts) != real:
            raise ToolError("CONFLICT", f"{shown(path)} was moved while it was being locked; try again", retryable=True)
        settle(effects.log, workspace.root, place)
        change = Change(context, place, _earlier(context, real))
        change.sweep()
        yield _with_content(change)


def _earlier(context: ToolContext, real: str) -> Effect | None:
    effect = context.effects.log.find(context.call.key, real)
    if effect is not None and effect.state == "doubt":
        raise ToolError(
            OUTCOME_UNKNOWN,
            f"a worker died while changing {shown(real)}, and its directory has since been removed: "
            f"{MAY_HAVE_HAPPENED}",
        )
    return effect if effect is not None and effect.state == "done" else None


def _with_content(change: Change) -> Change:
    """The change with the file's content and stamp, if it is a regular file."""
    place = change.place
    if place.is_regular and place.status is not None and place.status.st_size <= MAX_FILE_BYTES:
        change.data = read_bytes(place)
        change.now = stamp_of(change.data, linked=place.linked)
    else:
        change.now = stamp_at(place)
    return change

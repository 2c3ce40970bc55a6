"""Files as a run last saw them, and which agents.md it has been shown: a value, no I/O. Content is given in.

A stamp is the xxh3-128 hash of a file's whole content and its size; times never count, so a touched file is the same
file. Above SAMPLED_FROM (64 MiB) hashing all of it would cost more than it is worth: such a stamp hashes the first and
the last MiB and the first 64 KiB of every MiB, and carries the file's identity (inode and change time). Samples alone
never prove a file unchanged: only with the same identity does it count as the same, so a doubt is always a conflict.

A `FileTracker` belongs to one run or session, there is no other state; it is serialised as it stands.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

import xxhash
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

from plans.model import Value

MIB = 1024 * 1024
SAMPLED_FROM = 64 * MIB
"""Files larger than this are sampled."""
SAMPLE = 64 * 1024
"""Hashed of every MiB of a sampled file."""
NOTE_NAMES = ("AGENTS.md", "agents.md")
"""Instructions for agents in a directory; where both are there, the first counts."""
NOTES_BYTES = 32 * 1024
"""Of all agents.md together, in one session."""


class Stamp(Value):
    """A file as last seen. `stale`: somebody said that it changed since; `deleted`: the run deleted it itself."""

    hash: str = Field(description="xxh3-128 of the content, in hex; of its samples for a file above 64 MiB.")
    size: int = Field(ge=0, description="Bytes.")
    state: Literal["known", "stale", "deleted"] = "known"
    linked: bool = Field(default=False, description="A link led to the file.")
    identity: str = Field(default="", description="Inode and change time, for sampled files only.")

    @model_serializer(mode="wrap")
    def _compact(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what goes without saying: a run may know thousands of files."""
        unsaid = {"state": "known", "linked": False, "identity": ""}
        return {name: value for name, value in handler(self).items() if unsaid.get(name) != value}

    def is_same_as(self, other: Stamp) -> bool:
        """Whether both are of the same content."""
        return (self.hash, self.size, self.identity) == (other.hash, other.size, other.identity)

    def has_changed(self, now: Stamp | None) -> bool:
        """Whether the file is not as this stamp saw it; `now` None: there is no regular file any more.

        A link where there was none is a change, whatever it leads to.
        """
        if self.state == "deleted":
            return now is not None
        if self.state == "stale" or now is None or (now.linked and not self.linked):
            return True
        return not self.is_same_as(now)


class Fingerprint:
    """A stamp in the making: give it the content piece by piece, in order. `size` is what the file is said to have."""

    def __init__(self, size: int, identity: str = "", linked: bool = False) -> None:
        self._hasher, self._size, self._length, self._linked = xxhash.xxh3_128(), size, 0, linked
        self._identity = identity if size > SAMPLED_FROM else ""

    def add(self, piece: bytes | bytearray | memoryview) -> None:
        """The next piece of the content."""
        if self._size <= SAMPLED_FROM:
            self._hasher.update(piece)
        else:
            view = memoryview(piece)
            for start, end in self._samples(len(view)):
                self._hasher.update(view[start:end])
        self._length += len(piece)

    def stamp(self) -> Stamp:
        """The stamp of all that was given."""
        return Stamp(hash=self._hasher.hexdigest(), size=self._length, linked=self._linked, identity=self._identity)

    def _samples(self, length: int) -> Iterator[tuple[int, int]]:
        """The parts of the next `length` bytes that count, relative to them."""
        first, last = self._length, self._length + length
        for block in range(first // MIB * MIB, last, MIB):
            whole = block == 0 or block + 2 * MIB > self._size
            start, end = max(block, first), min(block + (MIB if whole else SAMPLE), last)
            if start < end:
                yield start - first, end - first


def stamp_of(content: bytes, *, linked: bool = False) -> Stamp:
    """The stamp of a content that is at hand as a whole."""
    fingerprint = Fingerprint(min(len(content), SAMPLED_FROM), linked=linked)
    fingerprint.add(content)
    return fingerprint.stamp()


class FileTracker(BaseModel):
    """What one run, or one session of an agent, knows about files. Paths are relative to its workspace."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)

    stamps: dict[str, Stamp] = Field(default_factory=dict, description="Files read or made, as last seen.")
    notes_seen: list[str] = Field(default_factory=list, description="Paths of the agents.md shown, in order.")

    def track_read(self, path: str, content: bytes | Stamp) -> None:
        """The run has read the file, or made it, with this content."""
        self.stamps[path] = content if isinstance(content, Stamp) else stamp_of(content)

    def track_deleted(self, path: str) -> None:
        """The run has deleted the file."""
        self.stamps[path] = Stamp(hash="", size=0, state="deleted")

    def has_been_modified_since_read(self, path: str, now: bytes | Stamp | None) -> bool:
        """Whether the file is not as the run last saw it; `now` None: it is gone. False for a file never seen."""
        seen = self.stamps.get(path)
        return seen is not None and seen.has_changed(stamp_of(now) if isinstance(now, bytes) else now)

    def get_agents_md_if_new(self, file_path: str, available: Mapping[str, str]) -> str | None:
        """The agents.md of the file's directory and of those above it, parents first, that were not shown before.

        `available` holds the texts by path. What is returned counts as shown; None when there is nothing new.
        """
        by_directory = [
            [name for name in names if name in available] for names in new_notes(file_path, self.notes_seen)
        ]
        due = [names[0] for names in by_directory if names]
        self.notes_seen += due
        return "\n\n".join(available[path] for path in due) or None

    def invalidate(self, paths: Iterable[str]) -> list[str]:
        """Somebody changed these files or directories: what was seen of them is stale. Returns the files concerned."""
        changed: list[str] = []
        for path in dict.fromkeys(paths):
            below = [name for name in self.stamps if name == path or path == "." or name.startswith(path + "/")]
            changed += [name for name in below if self.stamps[name].state == "known"]
        for name in changed:
            self.stamps[name] = self.stamps[name].model_copy(update={"state": "stale"})
        return changed

    def clear_session(self) -> None:
        """Forget everything: no file is known, every agents.md is new."""
        self.stamps.clear()
        self.notes_seen.clear()


def new_notes(path: str, seen: Collection[str]) -> list[list[str]]:
    """Of `note_paths`, the directories of which none was shown before."""
    return [names for names in note_paths(path) if not any(name in seen for name in names)]


def note_paths(path: str) -> list[list[str]]:
    """Where the agents.md that concern a file may be: per directory, outermost first, the possible names."""
    folders = [""]
    for name in posixpath.dirname(path).split("/"):
        if name:
            folders.append(posixpath.join(folders[-1], name))
    return [[posixpath.join(folder, name) for name in NOTE_NAMES] for folder in folders]

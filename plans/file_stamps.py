"""File stamps: files as a run last saw them, and which agents.md it has been shown. A value; content is passed in.

A stamp is the xxh3-128 hash of the whole content plus the size, however large the file is: a part of the content proves
nothing about the rest of it, and times and inodes nothing about the content. So `touch` is not a change.

A `FileTracker` belongs to one run or session; it is serialised with it and there is no other state.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import xxhash
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

from plansurvive.plans.model import Value

NOTE_NAMES = ("AGENTS.md", "agents.md")
"""File names of a directory's instructions for agents; the first one present wins."""
NOTES_BYTES = 32 * 1024
"""Maximum bytes of agents.md text per session, all files together."""


class Stamp(Value):
    """A file as last seen. `stale`: reported as changed since; `deleted`: deleted by the run itself."""

    hash: str = Field(description="xxh3-128 of the content, in hex.")
    size: int = Field(ge=0, description="Bytes.")
    state: Literal["known", "stale", "deleted"] = "known"
    linked: bool = Field(default=False, description="The path is a symbolic link to the file.")
    made: bool = Field(default=False, description="The run itself made this content, whole: it created or replaced it.")

    @model_serializer(mode="wrap")
    def _compact(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit defaults: a run may track thousands of files."""
        unsaid = {"state": "known", "linked": False, "made": False}
        return {name: value for name, value in handler(self).items() if unsaid.get(name) != value}

    def is_same_as(self, other: Stamp) -> bool:
        """Whether both stamps prove the same content."""
        return (self.hash, self.size) == (other.hash, other.size)

    def has_changed(self, now: Stamp | None) -> bool:
        """Whether the file differs from this stamp; `now` None: it is no longer a regular file.

        A symbolic link in place of a file is a change, whatever it leads to.
        """
        if self.state == "deleted":
            return now is not None
        if self.state == "stale" or now is None or (now.linked and not self.linked):
            return True
        return not self.is_same_as(now)


def stamp_of(content: bytes, *, linked: bool = False) -> Stamp:
    """The stamp of content held in memory."""
    return Stamp(hash=xxhash.xxh3_128_hexdigest(content), size=len(content), linked=linked)


class FileTracker(BaseModel):
    """The files one run (or agent session) has seen. Paths are relative to its workspace."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)

    stamps: dict[str, Stamp] = Field(default_factory=dict, description="Files read or written, as last seen.")
    notes_seen: list[str] = Field(default_factory=list, description="Paths of the agents.md shown, in order.")

    def track_read(self, path: str, content: bytes | Stamp) -> None:
        """Record that the run has read or written the file with this content."""
        stamp = content if isinstance(content, Stamp) else stamp_of(content)
        before = self.stamps.get(path)
        made = before is not None and before.made and before.is_same_as(stamp)
        self.stamps[path] = stamp.model_copy(update={"made": True}) if made else stamp

    def track_deleted(self, path: str) -> None:
        """Record that the run has deleted the file."""
        self.stamps[path] = Stamp(hash="", size=0, state="deleted")

    def has_been_modified_since_read(self, path: str, now: bytes | Stamp | None) -> bool:
        """Whether the file differs from what the run last saw; `now` None: deleted. False if untracked."""
        seen = self.stamps.get(path)
        return seen is not None and seen.has_changed(stamp_of(now) if isinstance(now, bytes) else now)

    def get_agents_md_if_new(self, file_path: str, available: Mapping[str, str]) -> str | None:
        """Text of the agents.md of the file's directory and its parents, parents first, that were not shown before.

        `available` maps paths to texts. What is returned counts as shown; None if there is nothing new.
        """
        by_directory = [
            [name for name in names if name in available] for names in new_notes(file_path, self.notes_seen)
        ]
        due = [names[0] for names in by_directory if names]
        self.notes_seen += due
        return "\n\n".join(available[path] for path in due) or None

    def invalidate(self, paths: Iterable[str]) -> list[str]:
        """Mark tracked files at or below `paths` as stale. Returns the files marked."""
        changed: list[str] = []
        for path in dict.fromkeys(paths):
            below = [name for name in self.stamps if name == path or path == "." or name.startswith(path + "/")]
            changed += [name for name in below if self.stamps[name].state == "known"]
        for name in changed:
            self.stamps[name] = self.stamps[name].model_copy(update={"state": "stale"})
        return changed

    def clear_session(self) -> None:
        """Forget all files and all agents.md shown."""
        self.stamps.clear()
        self.notes_seen.clear()


def new_notes(path: str, seen: Collection[str]) -> list[list[str]]:
    """The candidates of `note_paths`, without the directories whose agents.md was shown before."""
    return [names for names in note_paths(path) if not any(name in seen for name in names)]


def note_paths(path: str) -> list[list[str]]:
    """Candidate agents.md paths for a file: one list per directory, outermost first, in order of precedence."""
    folders = [""]
    for name in posixpath.dirname(path).split("/"):
        if name:
            folders.append(posixpath.join(folders[-1], name))
    return [[posixpath.join(folder, name) for name in NOTE_NAMES] for folder in folders]

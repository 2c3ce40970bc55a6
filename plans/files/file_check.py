"""Input and output types of the `compare_files` activity: which tracked files changed since a run last saw them."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.file_stamps import FileTracker, Stamp
from plansurvive.plans.model import Value

MAX_FILES = 5_000
"""Files compared at most; the most recently seen ones."""


class FilesSeen(Value):
    """Files as a run last saw them."""

    workspace: str = Field(description="Absolute directory.")
    directory: DirectoryIdentity | None = Field(default=None, description="Which directory that is.")
    stamps: dict[str, Stamp] = Field(default_factory=dict, description="Relative to the workspace.")

    @classmethod
    def of(
        cls,
        files: FileTracker,
        workspace: str,
        scopes: Collection[str] = (),
        directory: DirectoryIdentity | None = None,
    ) -> FilesSeen:
        """The tracked files in the workspace, without those of the task queues in `scopes` (on other machines)."""
        far = tuple(f"{scope}:" for scope in scopes)
        known = [name for name, stamp in files.stamps.items() if stamp.state == "known" and not name.startswith(far)]
        stamps = {name: files.stamps[name] for name in known[-MAX_FILES:]}
        return cls(workspace=workspace, directory=directory, stamps=stamps)


class FileDifferences(Value):
    """Result of the activity `compare_files`: files that differ from what the run last saw."""

    changed: list[str] = Field(default_factory=list)
    deleted: list[str] = Field(default_factory=list)

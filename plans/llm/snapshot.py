"""Input and output types of the `snapshot_workspace` activity."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.model import Value


class SnapshotRequest(Value):
    """Input of `snapshot_workspace`: the workspace to describe to the LLM."""

    workspace: str = Field(description="Absolute directory.")
    directory: DirectoryIdentity | None = Field(default=None, description="Which directory that is, of `plan_id`.")
    plan_id: str = ""
    max_bytes: int = Field(default=24_000, ge=1_000, le=200_000, description="Maximum length of the text, in bytes.")


class Snapshot(Value):
    """A workspace as text for the LLM: file names, and the beginnings of small text files."""

    text: str
    files: int = Field(description="Number of files and directories listed.")
    complete: bool = Field(description="Every file that is not ignored is listed.")
    templates: str = Field(default="", description="The templates that a plan here may run, one per line.")

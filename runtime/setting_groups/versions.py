"""The setting of the version of a worker's code."""

from __future__ import annotations

from pydantic import BaseModel, Field

PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}(/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?$"
"""NAME or NAME/BUILD: no character that the server's own notation uses (`.` in a name, `:`)."""


class VersionSettings(BaseModel):
    """Settings of the version of a worker's code."""

    deployment: str | None = Field(default=None, pattern=PATTERN)
    """Version (docs/upgrades.md#versions-for-teams) that `plan worker` runs as: `NAME/BUILD`, or `NAME` for a build
    named by the hash of its code; default: workers without a version."""

"""The setting of worktrees: where they are."""

from __future__ import annotations

from pathlib import Path

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile
from plansurvive.runtime.settings import Settings


class WorktreeSettings(FeatureSettings):
    """Settings of worktrees."""

    feature = "worktrees"

    worktrees: NamedFile | None = None
    """Directory of the worktrees of steps (docs/worktrees.md); default: `worktrees` in the cache directory."""


def folder_of(settings: Settings) -> Path:
    """The directory of all worktrees."""
    return settings.of(WorktreeSettings).worktrees or settings.cache_dir / "worktrees"


SETTINGS = WorktreeSettings

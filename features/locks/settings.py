"""The setting of locks: which plans have their workspace to themselves."""

from __future__ import annotations

from typing import Literal

from plansurvive.runtime.feature_settings import FeatureSettings


class LockSettings(FeatureSettings):
    """Settings of locks on workspaces."""

    feature = "locks"

    workspace_lock: Literal["asked", "all"] = "asked"
    """`all`: every plan has its workspace to itself (docs/plan-files.md#a-workspace-of-its-own); `asked`: those that
    say `workspaceLock: true`."""


SETTINGS = LockSettings

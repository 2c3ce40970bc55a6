"""The settings about what plans share on a machine, and how long what they leave is kept."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class UpkeepSettings(BaseModel):
    """Settings of locks on workspaces."""

    workspace_lock: Literal["asked", "all"] = "asked"
    """`all`: every plan has its workspace to itself (docs/plan-files.md#a-workspace-of-its-own); `asked`: those that
    say `workspaceLock: true`."""

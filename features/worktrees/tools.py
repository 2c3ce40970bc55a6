"""The tools of the feature, for commands: always the same."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings


def specs(settings: Settings) -> dict[str, ToolSpec]:
    """`merge_worktrees` and `revert_merge`."""
    from plansurvive.features.worktrees.merge_tool import merge_tool, revert_tool  # lazily: imports what runs tools
    from plansurvive.features.worktrees.settings import folder_of

    return {each.spec.name: each.spec for make in (merge_tool, revert_tool) for each in [make(folder_of(settings))]}


async def refresh(settings: Settings, data: Any = None, *, everything: bool = False) -> list[str]:  # noqa: ARG001
    """Nothing: it is always known."""
    return []

"""The tool `merge_worktrees`: takes over what steps have done in their worktrees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.features.worktrees.merging import Asked, merge
from plansurvive.features.worktrees.model import MERGE, WorktreeOrder
from plansurvive.features.worktrees.trees import Trees
from plansurvive.plans.errors import ToolError


def merge_tool(root: Path) -> Tool:
    """The tool, with the directory of the worktrees."""

    @tool(name=MERGE, approval="always", timeout=600.0, outside=True)
    async def merge_worktrees(
        steps: list[str],
        context: ToolContext,
        into: str | None = None,
        strategy: Literal["rebase", "merge"] = "rebase",
    ) -> dict[str, Any]:
        """Merge the work of steps with `worktree: true` into a branch of the workspace, all or none.

        Args:
            steps: Their ids, in the order in which they are merged; a loop's id means all its items.
            into: The branch; default: the one that is checked out in the workspace.
            strategy: rebase gives one commit a step on the branch, merge a merge commit for each.

        Returns:
            `{commits, conflicts}`: the commits that the branch got, oldest first; conflicts is empty.
        """
        call = context.call
        order = call.known_part(WorktreeOrder)
        if order is not None and order.tree:
            text = f"step '{call.step_id}' works in a worktree itself; take `worktree` out, or merge outside the block"
            raise ToolError("INVALID_ARGS", text)
        plan = order.plan if order is not None else call.plan_id
        asked = Asked(plan, steps, into, strategy, call.key, call.step_id)
        with context.workspace.directory("."):
            merged = await asyncio.to_thread(merge, Trees(root), context.workspace.root, asked)
        return {"commits": merged.commits, "conflicts": []}

    return merge_worktrees

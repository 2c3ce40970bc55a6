"""The tools `merge_worktrees`, which takes over what steps have done in their worktrees, and `revert_merge`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.features.worktrees.conflicts import Conflict
from plansurvive.features.worktrees.merging import Call, Merged, bring, changed_files, merge, revert
from plansurvive.features.worktrees.model import MERGE, REVERT, WorktreeConflict, WorktreeOrder
from plansurvive.features.worktrees.trees import MOVED, Trees, read, short
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.errors import ToolError

MAX_FILES = 1_000
"""Files of a merge that are listed."""


def merge_tool(root: Path) -> Tool:
    """The tool, with the directory of the worktrees."""

    @tool(name=MERGE, approval="always", effect="keyed", timeout=600.0, outside=True)
    async def merge_worktrees(
        steps: list[str],
        context: ToolContext,
        into: str | None = None,
        strategy: Literal["rebase", "merge"] = "rebase",
    ) -> dict[str, Any]:
        """Merge the work of steps with `worktree: true` into a branch of the workspace, all or none.

        In a worktree it merges into that: files in conflict get marks around their versions, to be resolved by steps.

        Args:
            steps: Their ids, in the order in which they are merged; a loop's id means all its items,
                and inside a loop the id of a step that of the same item.
            into: The branch; default: the one that is checked out in the workspace.
            strategy: rebase gives one commit a step on the branch, merge a merge commit for each.

        Returns:
            `{commits, into, conflicts}`: the commits that the branch got, oldest first; the files with marks.
        """
        order, call = _order(context), _call(context, into)
        if order.tree:
            if into is not None:
                raise ToolError("INVALID_ARGS", f"in a worktree, into is its own branch; leave {into!r} out")
            tree = read(Path(context.workspace.root).parent)
            if tree is None:
                raise ToolError(MOVED, f"the worktree of '{order.tree}' was removed meanwhile; run the step again")
            branch, brought = await asyncio.to_thread(bring, Trees(root), tree, order, call.key, steps, strategy)
            return {"commits": brought.commits, "into": branch, "conflicts": brought.conflicts}
        try:
            with context.workspace.directory("."):
                merged = await asyncio.to_thread(
                    merge, Trees(root), context.workspace.root, call, steps, strategy, order.chosen
                )
        except Conflict as conflict:
            context.left[WorktreeConflict.feature] = conflict.found
            raise
        return await _value(merged, context)

    return merge_worktrees


def revert_tool(root: Path) -> Tool:
    """The tool that undoes merges, with the directory of the worktrees."""

    @tool(name=REVERT, approval="always", effect="keyed", timeout=600.0, outside=True)
    async def revert_merge(commits: list[str], context: ToolContext, into: str | None = None) -> dict[str, Any]:
        """Undo a merge of `merge_worktrees`: one commit that reverts each of its commits, all or none.

        Args:
            commits: The commits of the merge, as its value has them, oldest first.
            into: The branch; default: the one that is checked out in the workspace.

        Returns:
            `{commits, into, conflicts}`: the commits that the branch got, oldest first; conflicts is empty.
        """
        call = _call(context, into)
        if _order(context).tree:
            if context.call.step_id.endswith(
                f".{UNDO}"
            ):  # of a plan in a worktree: what it has merged there stays there
                return {"commits": [], "into": into or "", "conflicts": []}
            text = f"step '{context.call.step_id}' works in a worktree itself"
            raise ToolError("INVALID_ARGS", f"{text}; take `worktree` out, or undo the merge outside the block")
        with context.workspace.directory("."):
            merged = await asyncio.to_thread(revert, Trees(root), context.workspace.root, call, commits)
        return await _value(merged, context)

    return revert_merge


def _order(context: ToolContext) -> WorktreeOrder:
    return context.call.known_part(WorktreeOrder) or WorktreeOrder(plan=context.call.plan_id)


def _call(context: ToolContext, into: str | None) -> Call:
    call = context.call
    return Call(_order(context).plan, call.step_id, call.key, into)


async def _value(merged: Merged, context: ToolContext) -> dict[str, Any]:
    """What a merge returns; its files are the call's. `plan undo` leaves them to the commits that revert it."""
    changed = await asyncio.to_thread(changed_files, context.workspace.root, merged)
    context.more_files += max(0, len(changed) - MAX_FILES)
    for path, is_there in changed[:MAX_FILES]:
        if not is_there:
            context.deleted(path)
            continue
        try:
            await asyncio.to_thread(context.wrote, path)
        except ToolError:  # a link out of the workspace, which is not followed; the merge has been made
            context.more_files += 1
    return {"commits": merged.commits, "into": short(merged.into), "conflicts": []}

"""Worktrees that `plan prune` removes: of plans that the server has no more. Their branches stay."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from plansurvive.features.worktrees.settings import folder_of
from plansurvive.features.worktrees.trees import RECORD, Trees
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Leftover, Leftovers


def _found(settings: Settings) -> Iterator[Leftover]:
    trees = Trees(folder_of(settings))
    for tree in trees.all():
        used = (tree.folder / RECORD).stat().st_mtime
        yield Leftover(tree.record.plan, used, partial(trees.remove, tree))


LEFTOVERS = Leftovers("worktrees", _found)

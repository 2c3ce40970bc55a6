"""One writer per file at a time, among all steps, plans and worker processes of a state directory.

The locks (`runtime.base.wait`) are a fixed set of files, so two paths may share one and then wait for each other. A
call holds one lock at a time, so there is no deadlock. Before it, a change holds the lock of its workspace, if there is
one (`tree_lock`), with all other changes: a checkpoint holds it alone, and so finds no change half made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import xxhash

from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.base import wait

LOCK_SECONDS = 30.0
TREE_SECONDS = 600.0
"""A checkpoint may store a lot while it holds the lock of a workspace."""
_STRIPES = 1_024


@contextmanager
def locked(directory: Path, workspace: str, path: str, stopped: Callable[[], bool]) -> Iterator[None]:
    """Hold the lock of a file. Raises ToolError FILE_BUSY (retryable) if it is not free within LOCK_SECONDS."""
    stripe = xxhash.xxh3_64_intdigest(f"{workspace}\0{path}".encode()) % _STRIPES
    tree = tree_lock(directory, workspace)
    with ExitStack() as held:
        try:
            if tree.exists():
                held.enter_context(wait.locked(tree, TREE_SECONDS, stopped, shared=True))
            held.enter_context(wait.locked(directory / f"{stripe:03x}", LOCK_SECONDS, stopped))
        except TimeoutError:
            raise ToolError(
                "FILE_BUSY", f"another step is still changing {shown(path)}; try again later", retryable=True
            ) from None
        yield


def tree_lock(directory: Path, workspace: str) -> Path:
    """The lock of a whole workspace. Only those have one that checkpoints are taken of: whoever makes them makes it."""
    return directory / f"tree-{xxhash.xxh3_128_hexdigest(workspace.encode())}"

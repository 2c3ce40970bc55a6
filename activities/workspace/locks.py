"""One writer per file at a time, among all steps, plans and worker processes of a state directory.

The locks (`runtime.wait`) are a fixed set of files, so two paths may share one and then wait for each other. A call
holds one lock at a time, so there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import xxhash

from activities.workspace.paths import shown
from plans.errors import ToolError
from runtime import wait

LOCK_SECONDS = 30.0
_STRIPES = 1_024


@contextmanager
def locked(directory: Path, workspace: str, path: str, stopped: Callable[[], bool]) -> Iterator[None]:
    """Hold the lock of a file. Raises ToolError FILE_BUSY (retryable) if it is not free within LOCK_SECONDS."""
    stripe = xxhash.xxh3_64_intdigest(f"{workspace}\0{path}".encode()) % _STRIPES
    with ExitStack() as held:
        try:
            held.enter_context(wait.locked(directory / f"{stripe:03x}", LOCK_SECONDS, stopped))
        except TimeoutError:
            raise ToolError(
                "FILE_BUSY", f"another step is still changing {shown(path)}; try again later", retryable=True
            ) from None
        yield

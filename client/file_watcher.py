"""Watches the workspace of a running plan, and tells the plan which of its files others have changed.

A plan notices by itself, when it edits a file, that the content is not as it last saw it; told beforehand, it knows at
once, and so does who looks at it. The plan's own writes are none of this: a file counts as changed only when its
content is not what the plan knows, and still is not when the steps have had a moment to report.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

from temporalio.client import Client
from watchfiles import awatch

from activities.workspace.contents import stamp_at
from activities.workspace.workspace import Workspace
from client import runs
from plans.errors import PlanError, ToolError
from plans.file_stamps import Stamp
from plans.run import ENDED

DEBOUNCE_MILLISECONDS = 300
SETTLE_SECONDS = 1.0
"""A step reports what it wrote when it ends; a change that is still unknown after this is another's."""
LOOK_MILLISECONDS = 2_000
"""How often to look whether the plan has ended, while nothing changes."""
_MESSAGE_BYTES = 12_000
_MANY = 200


async def watch_files(client: Client, plan: str, say: Callable[[str], None]) -> AsyncIterator[list[str]]:
    """Watch until the plan has ended; gives the files it was told of, each time. Raises PlanError BAD_WORKSPACE."""
    view = await runs.show(client, plan)
    root = Path(view.workspace or "/nonexistent")
    if not root.is_dir():
        raise PlanError(f"the workspace {root} is not on this machine; watch it where the worker is", "BAD_WORKSPACE")
    say(f"Watching {root} until the plan ends")
    looked = False
    async for found in _changes(root):
        changes = found
        if not looked:  # what changed before the watching began, too
            changes, looked = sorted({*changes, *await runs.stamps(client, plan)}), True
        if not changes:
            if (await runs.show(client, plan)).status in ENDED:
                return
            continue
        foreign = await _foreign(client, plan, root, changes)
        if foreign:
            await asyncio.sleep(SETTLE_SECONDS)
            foreign = await _foreign(client, plan, root, foreign)
        for part in _parts(foreign):
            await runs.files_changed(client, plan, part, "watch-files")
            yield part


async def _changes(root: Path) -> AsyncIterator[list[str]]:
    """Changed paths relative to the root; an empty list now and then while nothing changes."""
    try:
        watcher = awatch(
            root,
            watch_filter=None,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=LOOK_MILLISECONDS,
            yield_on_timeout=True,
        )
        async for changes in watcher:
            yield sorted({Path(path).relative_to(root).as_posix() for _, path in changes})
    except OSError as error:
        raise PlanError(f"{root} cannot be watched: {error}", "SYSTEM_ERROR") from error


async def _foreign(client: Client, plan: str, root: Path, paths: list[str]) -> list[str]:
    """Those that the plan knows, and that are not as it knows them."""
    named = None if len(paths) > _MANY or _length(paths) > _MESSAGE_BYTES else paths
    known = await runs.stamps(client, plan, named)
    candidates = {path: known[path] for path in paths if path in known and known[path].state == "known"}
    return await asyncio.to_thread(lambda: [path for path, seen in candidates.items() if _differs(root, path, seen)])


def _differs(root: Path, path: str, seen: Stamp) -> bool:
    try:
        with Workspace(str(root)).file(path) as place:
            now = stamp_at(place)
    except (ToolError, OSError):
        return True
    return now is None or not now.is_same_as(seen)


def _parts(paths: list[str]) -> Iterator[list[str]]:
    """The paths in lists that fit into one message each."""
    part: list[str] = []
    for path in paths:
        if part and _length([*part, path]) > _MESSAGE_BYTES:
            yield part
            part = []
        part.append(path)
    if part:
        yield part


def _length(paths: Iterable[str]) -> int:
    return sum(len(json.dumps(path, ensure_ascii=False).encode()) + 2 for path in paths)

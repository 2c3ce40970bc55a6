"""Watches the workspace of a running plan and reports files that others change to the plan.

A plan detects a conflict by itself when it edits a file; with this report it knows, and shows, the change at once. The
plan's own writes are not reported: a file counts as changed only if it differs from the plan's file stamp, and still
does after the steps have had a moment to report what they wrote.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from temporalio.client import Client
from watchfiles import awatch
from watchfiles.main import FileChange

from plansurvive.activities.workspace.contents import stamp_at
from plansurvive.activities.workspace.file_names import visible
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.client.verbs import runs
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.run import ENDED

DEBOUNCE_MILLISECONDS = 300
"""Time to collect changes before they are compared."""
SETTLE_SECONDS = 1.0
"""A step reports its writes when it ends; a change that the plan does not know after this time is someone else's."""
LOOK_MILLISECONDS = 2_000
"""Interval for checking whether the plan has ended while no file changes."""
_MESSAGE_BYTES = 12_000
_MANY = 200


async def watch_files(client: Client, plan: str, say: Callable[[str], None]) -> AsyncIterator[list[str]]:
    """Watch until the plan has ended; yields the reported paths, relative to the workspace, report by report.

    Raises PlanError: BAD_WORKSPACE if the workspace is not on this machine, SYSTEM_ERROR if it cannot be watched.
    """
    view = await runs.show(client, plan)
    root = Path(view.workspace or "/nonexistent")
    if not root.is_dir():
        raise PlanError(
            f"the workspace {root} is not on this machine; run `plan watch-files` on the worker's machine",
            "BAD_WORKSPACE",
        )
    say(f"Watching {root} until the plan ends")
    async for found in _changes(root):
        changes = found.paths
        if found.more:
            changes = sorted({*changes, *await runs.stamps(client, plan)})
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


class _Found(NamedTuple):
    """Changed paths relative to the workspace; `more`: others may have changed as well, so compare all known files."""

    paths: list[str]
    more: bool = False


async def _changes(root: Path) -> AsyncIterator[_Found]:
    """What changed, first of all before the watching began; nothing every two seconds while nothing changes."""
    more = True
    while True:
        try:
            async for changes in _watcher(root):
                paths = {visible(Path(path).relative_to(root).as_posix()) for _, path in changes}
                yield _Found(sorted(paths), more)
                more = False
        except OSError as error:
            raise PlanError(f"the workspace {root} cannot be watched: {error}", "SYSTEM_ERROR") from error
        except ExceptionGroup as group:  # the library stops at a name that is not UTF-8: begin again
            if group.split(RuntimeError)[1] is not None:
                raise
            more = True
        else:
            return


def _watcher(root: Path) -> AsyncGenerator[set[FileChange], None]:
    return awatch(
        root,
        watch_filter=None,
        debounce=DEBOUNCE_MILLISECONDS,
        rust_timeout=LOOK_MILLISECONDS,
        yield_on_timeout=True,
    )


async def _foreign(client: Client, plan: str, root: Path, paths: list[str]) -> list[str]:
    """Of the paths, those of files the plan has seen whose content differs from its file stamp."""
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
    """Split the paths into lists that each fit into one signal."""
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

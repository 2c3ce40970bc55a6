"""Removes by age what plans have left in the state directory, once the server has them no more: `runs/ID`, old logs.

What commands had as /tmp goes as soon as its plan has ended.

A plan that the server still has, running or ended, keeps its records: it may be shown, resumed, undone. An answer that
is not a clear "no such workflow" keeps them as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.runtime import scratch
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Records

RPC_TIMEOUT = timedelta(seconds=10)
LOGS = ("*.old.log",)
"""Logs of processes before the present ones."""


async def prune_records(
    client: Client, settings: Settings, older_than: timedelta, *, dry_run: bool, audit: bool = False,
    features: Sequence[Records] = (),
) -> tuple[int, int]:  # fmt: skip
    """Remove records and logs older than this; returns how many files, and their bytes. `audit`: audit records as well.

    Raises RPCError if the server does not answer: what was removed until then stays removed.
    """
    before, files, freed = time.time() - older_than.total_seconds(), 0, 0
    for folder in sorted((settings.state_dir / "runs").glob("*")):
        if await asyncio.to_thread(_newest, folder) < before and await _is_gone(client, folder.name):
            chosen = [path for path in _files_of(folder) if audit or not any(path.match(e.pattern) for e in features)]
            going = [] if dry_run else await asyncio.to_thread(_older, chosen, before)
            for each in features if going else ():
                await asyncio.to_thread(each.removing, settings, folder, going)
            count, size = await asyncio.to_thread(_remove, chosen, before, dry_run)
            files, freed = files + count, freed + size
            if not dry_run:
                with suppress(OSError):  # something else is in it
                    folder.rmdir()
    logs = [path for pattern in LOGS for path in settings.state_dir.glob(pattern)]
    count, size = await asyncio.to_thread(_remove, logs, before, dry_run)
    return files + count, freed + size


def _older(paths: list[Path], before: float) -> list[Path]:
    """Those that are there, and older than that."""
    found = list[Path]()
    for path in paths:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                found.append(path)
    return found


async def prune_scratch(client: Client, settings: Settings, *, dry_run: bool) -> int:
    """Remove what commands of ended plans had as /tmp, where no worker saw the end; returns of how many plans.

    Raises RPCError if the server does not answer.
    """
    count = 0
    for home, owner in await asyncio.to_thread(lambda: list(scratch.owned(settings.state_dir))):
        is_left = home.name.startswith(scratch.GONE)
        if is_left or (owner and await _has_ended(client, owner)):
            count += 1 if dry_run else int(await asyncio.to_thread(scratch.clear, home))
    return count


async def _has_ended(client: Client, workflow_id: str) -> bool:
    try:
        found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return True
    return found.status is not WorkflowExecutionStatus.RUNNING


async def _is_gone(client: Client, name: str) -> bool:
    """Whether the server has no workflow of that plan or agent."""
    for workflow_id in (f"plan-{name}", name):
        try:
            await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        else:
            return False
    return True


def _files_of(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.is_file() and not path.is_symlink()]


def _newest(folder: Path) -> float:
    return max((path.stat().st_mtime for path in _files_of(folder)), default=time.time())


def _remove(paths: list[Path], before: float, dry_run: bool) -> tuple[int, int]:
    sizes = list(_removed(paths, before, dry_run))
    return len(sizes), sum(sizes)


def _removed(paths: list[Path], before: float, dry_run: bool) -> Iterator[int]:
    for path in paths:
        with suppress(FileNotFoundError):
            found = path.stat()
            if found.st_mtime < before:
                if not dry_run:
                    path.unlink()
                yield found.st_size

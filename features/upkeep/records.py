"""Removes by age what plans have left in the state directory, once the server has them no more: `runs/ID`, old logs.

What commands had as /tmp goes as soon as its plan has ended, and notes of used due times when no signature of their
schedule can count any more.

A plan that the server still has, running or ended, keeps its records: it may be shown, resumed, undone. An answer that
is not a clear "no such workflow" keeps them as well.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.plans.agents.order import AGENT_PREFIX
from plansurvive.runtime import schedule_book, scratch
from plansurvive.runtime.audit.ledger import Ledger
from plansurvive.runtime.settings import Settings

RPC_TIMEOUT = timedelta(seconds=10)
LOGS = ("*.old.log",)
"""Logs of processes before the present ones."""


AUDIT = "audit-*.jsonl"
"""Audit records, which only a person's command removes."""


async def prune_records(
    client: Client, settings: Settings, older_than: timedelta, *, dry_run: bool, audit: bool = False
) -> tuple[int, int]:
    """Remove records and logs older than this; returns how many files, and their bytes. `audit`: audit records as well.

    Raises RPCError if the server does not answer: what was removed until then stays removed.
    """
    before, files, freed = time.time() - older_than.total_seconds(), 0, 0
    for folder in sorted((settings.state_dir / "runs").glob("*")):
        if await asyncio.to_thread(_newest, folder) < before and await _is_gone(client, folder.name):
            chosen = [path for path in _files_of(folder) if audit or not path.match(AUDIT)]
            if not dry_run:
                await asyncio.to_thread(_note, settings, folder, chosen, before)
            count, size = await asyncio.to_thread(_remove, chosen, before, dry_run)
            files, freed = files + count, freed + size
            if not dry_run:
                with suppress(OSError):  # something else is in it
                    folder.rmdir()
    logs = [path for pattern in LOGS for path in settings.state_dir.glob(pattern)]
    count, size = await asyncio.to_thread(_remove, logs, before, dry_run)
    return files + count, freed + size


def _note(settings: Settings, folder: Path, chosen: list[Path], before: float) -> None:
    """Write into the ledger what is about to be removed, and who removes it."""
    going, heads, owner = list[str](), list[str](), ""
    for path in chosen:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                going.append(path.name)
                if path.match(AUDIT):
                    first, *_, last = path.read_text(encoding="utf-8", errors="replace").splitlines() or ["", ""]
                    owner = _field(first, "workflowId") or owner
                    heads.append(_field(last, "head") or "unreadable")
    name = folder.name
    if going:
        workflow_id = owner or (name if name.startswith(AGENT_PREFIX) else f"plan-{name}")
        Ledger.of(settings).pruned(workflow_id, ", ".join(sorted(going))[:1_000], " ".join(heads)[:1_000])


def _field(line: str, name: str) -> str:
    with suppress(ValueError, RecursionError, AttributeError):
        return str(json.loads(line).get(name, ""))
    return ""


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


def prune_schedule_runs(settings: Settings, now: float, *, dry_run: bool) -> tuple[int, int]:
    """Remove the notes of due times so old that no signature of their schedule counts for them; files and bytes."""
    return _remove(_files_of(settings.state_dir / schedule_book.USED), now - schedule_book.KEPT_SECONDS, dry_run)


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

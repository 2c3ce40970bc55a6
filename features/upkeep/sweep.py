"""Garbage collection of stored values: removes the files in the state directory that no workflow refers to.

Large values and large plans are stored as files named by their hash, and referred to by that hash from a workflow's
history, from the heartbeat of a command that runs (its output so far), or from another stored value. `prune` reads the
histories of all workflows that the server retains, open and closed, and removes the unreachable files. It removes
nothing if any history cannot be read or decrypted, or if the directory also contains values of another server. Files
younger than `older_than` stay: they may belong to a workflow that is just being started.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from google.protobuf.message import DecodeError, Message
from pydantic import Field
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.upkeep.records import prune_records, prune_scratch
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Value
from plansurvive.runtime import namespaces
from plansurvive.runtime.errors import KeyMissing, Unauthentic
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.held import aside_of, put_back, restore
from plansurvive.runtime.sealing import Sealing
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Leftovers, Records, Unused

OLDER_THAN = timedelta(hours=1)
"""Default minimum age of a file to be removed."""
AT_ONCE = 8
"""Histories read concurrently."""
_DIGEST = re.compile(rb"(?=([0-9a-f]{64}))")
"""Any 64 hexadecimal digits may be a reference; a false match only means that a file is not removed."""


class PruneRefused(PlanError):
    """Nothing was removed, because values that are still needed could be lost."""

    code = "PRUNE_REFUSED"


class Pruned(Value):
    """Result of `prune`."""

    workflows: int
    """Workflow runs whose history was read."""
    kept: int
    """Files that are referred to."""
    kept_bytes: int
    removed: int
    """Files removed, or to be removed if `dry_run`."""
    removed_bytes: int
    young: int
    """Unreferenced files that are too young to be removed."""
    dry_run: bool
    records: int = 0
    """Files of records and logs removed, or to be removed."""
    records_bytes: int = 0
    scratch: int = 0
    """Ended plans whose commands' temporary files were removed, or are to be."""
    results: int = 0
    """Files that features keep and that were not used for long (results of earlier runs), removed or to be removed."""
    results_bytes: int = 0
    leftovers: dict[str, int] = Field(default_factory=dict)
    """What steps had left of plans that the server has no more (worktrees), removed or to be removed: how many."""


async def prune(
    client: Client, settings: Settings, *, older_than: timedelta = OLDER_THAN, dry_run: bool = False,
    records: timedelta | None = None, audit: bool = False, features: Sequence[Unused] = (),
    kept: Sequence[Records] = (), leftovers: Sequence[Leftovers] = (),
) -> Pruned:  # fmt: skip
    """Remove stored values that no workflow refers to; with `dry_run`, only count them.

    `records`: also records and logs older than this, of plans that the server has no more; `audit`: their audit records
    as well, which is for a person to say. `features`: what features keep and nobody has used for long; `kept`: what
    they say of the records; `leftovers`: what steps have left, which goes with the last run of their plan.

    Works on the state directory of `settings`: run it where the values are. `older_than`: younger files stay. Raises
    PruneRefused; nothing was removed then.
    """
    await _require_ours(client, settings)
    directory = settings.state_dir / "values"
    now = time.time()
    await asyncio.to_thread(put_back, directory)
    files = {path.parent.name + path.name: path for path in directory.glob("??/" + "?" * 62)}
    try:
        sealing = sealing_of(settings)
        ids, named = await _named_by_workflows(client, files.keys(), sealing)
        named |= await _named_by_schedules(client, files.keys(), sealing)
        needed = await asyncio.to_thread(_reachable, named, files, sealing)
    except (KeyMissing, Unauthentic) as error:
        text = f"what refers to stored values cannot be read: {error.message}; nothing was removed"
        raise PruneRefused(text) from error
    loose = [path for digest, path in files.items() if digest not in needed]
    # Hidden files are temporary; old ones were left by a process that was killed while writing.
    loose += [path for path in directory.glob("??/.*") if path.is_file()]
    removed = await asyncio.to_thread(_sweep, loose, now - older_than.total_seconds(), dry_run)
    left = await asyncio.to_thread(cleared, settings, leftovers, ids, now - older_than.total_seconds(), dry_run)
    other = await _others(client, settings, records, now, features, kept, dry_run=dry_run, audit=audit)
    return Pruned(
        workflows=len(ids),
        kept=len(needed),
        kept_bytes=sum(map(_size, (files[digest] for digest in needed))),
        removed=len(removed),
        removed_bytes=sum(removed),
        young=len(loose) - len(removed),
        dry_run=dry_run,
        leftovers=left,
        **other,
    )


async def _others(
    client: Client,
    settings: Settings,
    records: timedelta | None,
    now: float,
    features: Sequence[Unused],
    kept: Sequence[Records],
    *,
    dry_run: bool,
    audit: bool,
) -> dict[str, int]:
    """What was removed besides stored values: records and logs, and results that no run has taken for long."""
    count, freed = await _records(client, settings, records, kept, dry_run=dry_run, audit=audit)
    notes, results = list[int](), list[int]()
    for each in features:
        found = notes if each.are_records else results
        found += await asyncio.to_thread(_sweep, each.files(settings), now - each.age(settings), dry_run)
    try:
        cleared = await prune_scratch(client, settings, dry_run=dry_run)
    except RPCError as error:
        raise PruneRefused(f"the plans of temporary files cannot be looked up: {error.message}; try again") from error
    return {
        "records": count + len(notes), "records_bytes": freed + sum(notes), "scratch": cleared,
        "results": len(results), "results_bytes": sum(results),
    }  # fmt: skip


async def _records(
    client: Client,
    settings: Settings,
    older_than: timedelta | None,
    kept: Sequence[Records],
    *,
    dry_run: bool,
    audit: bool,
) -> tuple[int, int]:
    if older_than is None:
        return 0, 0
    try:
        return await prune_records(client, settings, older_than, dry_run=dry_run, audit=audit, features=kept)
    except RPCError as error:
        raise PruneRefused(f"the plans of records cannot be looked up: {error.message}; try again") from error


async def _require_ours(client: Client, settings: Settings) -> None:
    """Raises PruneRefused if this server's histories do not cover everything in the storage."""
    if settings.storage != "local":
        raise PruneRefused(
            f"values are stored in {settings.storage}, which `plan prune` does not clean up; add a lifecycle rule"
            " to the bucket. Objects must expire later than workflows: longest run of a plan plus namespace retention"
        )
    others = await namespaces.others(settings, client)
    if others:
        raise PruneRefused(
            f"{settings.state_dir} may also contain values of another server: {'; '.join(others)}. If the plans of that"
            " server are no longer needed, remove the file in brackets and try again"
        )


async def _named_by_workflows(client: Client, known: Set[str], sealing: Sealing) -> tuple[list[str], set[str]]:
    """The ids of all workflow runs, and the stored values that their histories refer to. Raises PruneRefused."""
    named, ids = set[str](), list[str]()
    async for group in _in_groups(client):
        for found in await asyncio.gather(*(_named_by(client, each, known, sealing) for each in group)):
            named |= found
        ids += [each.id for each in group]
    return ids, named


async def _in_groups(client: Client) -> AsyncIterator[list[WorkflowExecution]]:
    group: list[WorkflowExecution] = []
    try:
        async for execution in client.list_workflows():
            group.append(execution)
            if len(group) == AT_ONCE:
                yield group
                group = []
    except RPCError as error:
        raise PruneRefused(
            f"the workflows of the server cannot be listed: {error.message}; nothing was removed"
        ) from error
    yield group


async def _named_by(client: Client, execution: WorkflowExecution, known: Set[str], sealing: Sealing) -> set[str]:
    handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
    named: set[str] = set()
    try:
        if execution.status is WorkflowExecutionStatus.RUNNING:
            # Before its history: the output of a command that ends in between is named by one or the other.
            for pending in (await handle.describe()).raw_description.pending_activities:
                named |= _digests_of(pending, known, sealing)
        async for event in handle.fetch_history_events():
            named |= _digests_of(event, known, sealing)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:  # deleted since it was listed
            return named
        text = f"the history of workflow '{execution.id}' cannot be read: {error.message}; nothing was removed"
        raise PruneRefused(text) from error
    return named


async def _named_by_schedules(client: Client, known: Set[str], sealing: Sealing) -> set[str]:
    """The stored values that inputs of scheduled workflows refer to."""
    named: set[str] = set()
    try:
        async for schedule in await client.list_schedules():
            found = await client.get_schedule_handle(schedule.id).describe()
            named |= _digests_of(found.raw_description, known, sealing)
    except RPCError as error:
        if error.status is not RPCStatusCode.UNIMPLEMENTED:
            raise PruneRefused(
                f"the schedules of the server cannot be read: {error.message}; nothing was removed"
            ) from error
    return named


def _digests(data: bytes, known: Set[str]) -> set[str]:
    return {match[1].decode() for match in _DIGEST.finditer(data)} & known


def _digests_of(message: Message, known: Set[str], sealing: Sealing) -> set[str]:
    """The references in a message of the server, inside its encrypted payloads as well. Raises KeyMissing."""
    found = _digests(message.SerializeToString(), known)
    return found.union(*(_digests(plain, known) for plain in sealing.plain_texts(message)))


def _reachable(named: set[str], files: dict[str, Path], sealing: Sealing) -> set[str]:
    """Mark phase: the named values and everything they refer to, transitively."""
    reached, waiting = set(named), list(named)
    while waiting:
        with suppress(FileNotFoundError, DecodeError):  # a damaged file refers to nothing that could be used
            fresh = _digests_of(Payload.FromString(files[waiting.pop()].read_bytes()), files.keys(), sealing) - reached
            reached |= fresh
            waiting += fresh
    return reached


def cleared(
    settings: Settings, leftovers: Sequence[Leftovers], ids: Sequence[str], before: float, dry_run: bool
) -> dict[str, int]:
    """Remove what was last used before a time by plans of which the server has no run; says how much of each."""
    names = {each.removeprefix("plan-") for each in ids}
    names |= {re.sub(r"-r[0-9]+\Z", "", each) for each in names}  # the runs that continue one have its leftovers
    count = dict[str, int]()
    for each in leftovers:
        for left in each.found(settings):
            if left.plan not in names and left.used < before:
                if not dry_run:
                    left.remove()
                count[each.name] = count.get(each.name, 0) + 1
    return count


def _sweep(paths: Iterable[Path], before: float, dry_run: bool) -> list[int]:
    """Remove the files last used before a time; returns their sizes."""
    return [size for path in paths for size in _removed(path, before, dry_run)]


def _removed(path: Path, before: float, dry_run: bool) -> Iterator[int]:
    with suppress(FileNotFoundError):
        size, touched = path.stat().st_size, path.stat().st_mtime
        if touched >= before:
            return
        if not dry_run and not _remove(path, touched):
            return
        yield size


def _remove(path: Path, touched: float) -> bool:
    """Remove a file unless it was touched meanwhile: a writer that needs an existing value touches it.

    Renamed first, so that the check cannot race: after the rename, a writer finds no file and writes the value again.
    """
    aside = aside_of(path)
    path.rename(aside)
    if aside.stat().st_mtime != touched:
        restore(aside, path)
        return False
    aside.unlink()
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0

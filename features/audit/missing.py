"""Compares the ledger of a state directory with what the server and the directory have: which plans are missing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from pydantic import Field
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.rpc import translated
from plansurvive.features.audit import files, ledger
from plansurvive.features.audit.chain import head
from plansurvive.plans.model import Problem, Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import KEY, private_key

RPC_TIMEOUT = timedelta(seconds=10)
SLACK = timedelta(minutes=1)
"""Between the clock of the server, which dates a record, and that of the worker, which dates a line."""


class LedgerReport(Value):
    """What the ledger of a state directory says, and what is missing."""

    ok: bool
    lines: int
    head: str = Field(description="Hash of the last line: it stands for the whole ledger; note it elsewhere.")
    plans: int = Field(description="Plans and agents that began.")
    records: int = Field(description="Records that were kept and are here, as they were kept.")
    on_server: int = Field(description="Starts without a record here that the server still has.")
    pruned: list[ledger.Line] = Field(default_factory=list, description="What was removed, and by whom.")
    problems: list[Problem] = Field(default_factory=list)


async def verify_ledger(client: Client, settings: Settings, only: str = "") -> LedgerReport:
    """Whether the ledger is whole, and all that it names is there or was pruned. `only`: this workflow's lines.

    Raises NotConnected, BadRecord.
    """
    lines = await asyncio.to_thread(ledger.read, settings.state_dir)
    problems = ledger.broken(lines, public_key(settings))
    known = [each for each in lines if each is not None and only in ("", each.workflow_id)]
    pruned = [each for each in known if each.action == "pruned"]
    records = 0
    # Of each record the last line counts: one that continues replaces it.
    kept = {(each.workflow_id, each.run_id): each for each in known if each.action == "kept"}
    for line in kept.values():
        if _is_pruned(line, pruned):
            continue
        missing = await asyncio.to_thread(_difference, settings, line)
        records += not missing
        problems += [missing] if missing else []
    on_server = 0
    for line in known:
        if line.action != "began" or _is_pruned(line, pruned):
            continue
        if await asyncio.to_thread(_is_covered, settings, line):
            continue
        if await _has(client, line):
            on_server += 1
        else:
            text = f"{line.workflow_id} began at {line.time:%Y-%m-%d %H:%M:%S} as run {line.run_id}: neither the server"
            problems.append(Problem(code="AUDIT_MISSING", message=f"{text} nor the state directory has it"))
    last = lines[-1] if lines else None
    return LedgerReport(
        ok=not problems, lines=len(lines), head=last.hash if last else "", records=records, on_server=on_server,
        plans=len({each.workflow_id for each in known if each.action == "began"}), pruned=pruned, problems=problems,
    )  # fmt: skip


def _is_pruned(line: ledger.Line, pruned: list[ledger.Line]) -> bool:
    return any(each.workflow_id == line.workflow_id and each.number > line.number and each.head for each in pruned)


def _difference(settings: Settings, line: ledger.Line) -> Problem | None:
    path = files.path_of(settings.state_dir, line.workflow_id, line.run_id)
    if not path.exists():
        text = f"the record of {line.workflow_id} that was kept at {line.time:%Y-%m-%d %H:%M:%S} is not there any more"
        return Problem(code="AUDIT_MISSING", message=text)
    record = files.read_file(path, line.workflow_id).record
    if head(record.entries, record.origin) != line.head:
        text = f"the record of {line.workflow_id} is another than the one that was kept (line {line.number})"
        return Problem(code="AUDIT_CHANGED", message=text)
    return None


def _is_covered(settings: Settings, line: ledger.Line) -> bool:
    """Whether a kept record is of the run that began then: its first, its last, or one between."""
    for stored in files.read(settings.state_dir, line.workflow_id):
        record = stored.record
        if line.run_id in (record.run_id, record.last):
            return True
        if record.entries and record.began - SLACK <= line.time <= record.entries[-1].time + SLACK:
            return True
    return False


async def _has(client: Client, line: ledger.Line) -> bool:
    """Whether the server has the run, or one that goes on from it."""
    for run_id in (line.run_id, None):
        handle = client.get_workflow_handle(line.workflow_id, run_id=run_id)
        try:
            found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise translated(error, line.workflow_id) from error
            continue
        if run_id or found.raw_description.workflow_execution_info.first_run_id == line.run_id:
            return True
    return False


def public_key(settings: Settings) -> str:
    """The public half of the state directory's key; empty if there is none, as none is made to check nothing."""
    if not (settings.state_dir / KEY).exists():
        return ""
    return private_key(settings).public_key().public_bytes_raw().hex()

"""Audit records as files: `runs/ID/audit-RUN.jsonl` in the state directory, sealed by the directory's key.

One line per entry, between a line that says what the record is of and one that seals it: the number of entries and the
hash of the last one, signed (Ed25519) with the key that decisions are signed with. Whoever can write the file but not
read the key can neither cut it off nor compute its hashes again. A record is written whole when its plan has ended, and
replaced only by one that goes on where it ends: of a plan that was reset after its end.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plansurvive.features.audit.chain import FORM, broken, forged, head
from plansurvive.features.audit.consent import unproven
from plansurvive.features.audit.entries import Entry
from plansurvive.features.audit.history import Record
from plansurvive.features.policy.model import kept_as
from plansurvive.features.signing.model import content_of, is_by
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Problem
from plansurvive.plans.signature import Signature
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key

SEAL = "audit"
"""Kind of the signature of a record's end."""
MAX_BYTES = 512 * 1024 * 1024
"""Of a file that is read."""
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


class BadRecord(PlanError):
    """The file of an audit record is not one."""

    code = "AUDIT_UNREADABLE"


@dataclass(frozen=True)
class Stored:
    """A record that was read from a file."""

    record: Record
    seal: str
    """The signature of its end, hexadecimal; empty if there is none."""
    problems: list[Problem]
    """What is wrong with its lines, beside what its chain says."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """The texts of the policies that answered, by hash."""
    key: str = ""
    """The public key that it names, hexadecimal."""


def folder_of(directory: Path, workflow_id: str) -> Path:
    """The directory of what is kept of a plan or agent. An id that could lead elsewhere counts by its hash."""
    name = workflow_id.removeprefix("plan-")
    safe = name if _SAFE.fullmatch(name) else f"id-{hashlib.sha256(workflow_id.encode()).hexdigest()[:32]}"
    return directory / "runs" / safe


def path_of(directory: Path, workflow_id: str, run_id: str) -> Path:
    """Where the record of a workflow is kept. `run_id`: its first run, as an id may be used again after retention."""
    return folder_of(directory, workflow_id) / f"audit-{run_id}.jsonl"


def write(settings: Settings, record: Record) -> Path:
    """Keep the record of an ended workflow. Raises OSError, and SettingError for a key that others can read."""
    path = path_of(settings.state_dir, record.workflow_id, record.run_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = private_key(settings)
    first: dict[str, Any] = {
        "audit": FORM, "workflowId": record.workflow_id, "runId": record.run_id, "lastRunId": record.last,
        "key": key.public_key().public_bytes_raw().hex(),
    }  # fmt: skip
    if policies := policies_of(settings.state_dir, record.entries):
        first["policies"] = policies
    lines = [json.dumps(first), *(each.model_dump_json(exclude_defaults=True) for each in record.entries)]
    last = head(record.entries, record.origin)
    signature = key.sign(_sealed(record, last, first["key"])).hex()
    lines.append(json.dumps({"sealed": len(record.entries), "head": last, "signature": signature}))
    write_whole(path, ("\n".join(lines) + "\n").encode(), ".audit-")
    return path


def read(directory: Path, workflow_id: str) -> list[Stored]:
    """The records in the state directory, oldest start first. Raises BadRecord if one cannot be read at all."""
    found = [read_file(path, workflow_id) for path in folder_of(directory, workflow_id).glob("audit-*.jsonl")]
    return sorted(found, key=lambda each: each.record.began)


def has_run(directory: Path, workflow_id: str, run_id: str) -> bool:
    """Whether a record is kept that ends in this run."""
    for path in folder_of(directory, workflow_id).glob("audit-*.jsonl"):
        with path.open(encoding="utf-8", errors="replace") as file:
            if f'"lastRunId": "{run_id}"' in file.readline():
                return True
    return False


def read_file(path: Path, workflow_id: str) -> Stored:
    """The record in a file. Raises BadRecord if it cannot be read at all."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadRecord(f"{path} is too large for an audit record")
        lines = [_line(path, each) for each in path.read_bytes().splitlines()]
    except OSError as error:
        raise BadRecord(f"{path} cannot be read: {error.strerror}") from error
    first, last = (lines[0], lines[-1]) if lines else ({}, {})
    if first.get("audit") != FORM or not isinstance(first.get("runId"), str):
        raise BadRecord(f"{path} does not begin like an audit record of this version; it is of a newer one, or changed")
    sealed = "sealed" in last
    entries = [_entry(path, each) for each in (lines[1:-1] if sealed else lines[1:])]
    record = Record(workflow_id, str(first["runId"]), entries, True, last=str(first.get("lastRunId", "")))
    problems = list[Problem]()
    if path.name != path_of(path, workflow_id, record.run_id).name:
        problems.append(Problem(code="AUDIT_CHANGED", message=f"{path.name} is the record of another run"))
    if first.get("workflowId") != workflow_id:
        problems.append(Problem(code="AUDIT_CHANGED", message="the file is the record of another plan"))
    if not sealed:
        problems.append(Problem(code="AUDIT_CUT", message="the record has no seal: its end was cut off"))
    elif last.get("sealed") != len(entries) or last.get("head") != head(entries, record.origin):
        problems.append(Problem(code="AUDIT_CUT", message="the seal is of another record: its end was changed"))
    policies = first.get("policies")
    texts = {str(name): str(text) for name, text in policies.items()} if isinstance(policies, dict) else {}
    return Stored(record, str(last.get("signature", "")), problems, texts, str(first.get("key", "")))


def policies_of(directory: Path, entries: Sequence[Entry]) -> dict[str, str]:
    """The texts of the policies that entries name, as far as the state directory has them, each once."""
    found = dict[str, str]()
    for hash_ in dict.fromkeys(each.policy for each in entries if each.policy):
        with suppress(OSError, ValueError):
            found[hash_] = (directory / kept_as(hash_)).read_bytes().decode()
    return found


def problems_of(stored: Stored, key: str) -> list[Problem]:
    """Everything that is wrong with a stored record.

    `key`: public key of the state directory, hexadecimal; empty: it has none, and the record's own key counts.
    """
    record = stored.record
    if key and stored.key and key != stored.key:
        text = "the record names another key than this state directory's"
        return [*stored.problems, Problem(code="AUDIT_SIGNATURE", message=text)]
    key = key or stored.key
    found = [*stored.problems, *broken(record.entries, record.origin), *forged(record.entries, record.workflow_id, key)]
    found += unproven(record.entries, stored.policies)
    if not _is_sealed(stored, key):
        found.append(Problem(code="AUDIT_SIGNATURE", message="the seal is not by this state directory's key"))
    return found


def _is_sealed(stored: Stored, key: str) -> bool:
    record = stored.record
    try:
        signature = Signature(id="0" * 32, time=0, value=stored.seal)
    except ValidationError:
        return False
    return is_by(key, signature, _sealed(record, head(record.entries, record.origin), stored.key))


def _sealed(record: Record, last: str, key: str) -> bytes:
    """What is signed of a whole record. `key`: that it names; one that was kept earlier names none."""
    runs = f"{record.run_id} {record.last} {key}".rstrip()
    return content_of(SEAL, record.workflow_id, runs, last, str(len(record.entries)), 0)


def _line(path: Path, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{path} has a line that was changed: not JSON") from error
    if not isinstance(found, dict):
        raise BadRecord(f"{path} has a line that was changed: not an entry")
    return found


def _entry(path: Path, data: dict[str, Any]) -> Entry:
    try:
        return Entry.model_validate(data)
    except ValidationError as error:
        raise BadRecord(f"{path} has a line that was changed: not an entry") from error

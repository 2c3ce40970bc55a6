"""The directories of plans in a host's workspace: one for each plan, with a name that is never used again.

What is known of a directory is in a record in the state directory: the last checkpoint and where the contents of its
files are stored. A plan that comes back to a host gets another directory, so what an earlier worker or a command of it
still writes goes into one that nothing reads any more.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plansurvive.plans.hosts.host import Checkpoint
from plansurvive.runtime.base.atomic_file import write_whole

RECORDS = "hosts"
"""Name of the directory of the records in the state directory."""
_NAME = re.compile(r"(.+)@([0-9a-f]{12})")


@dataclass
class Record:
    """What is known of a plan's directory. `files`: by path, what `packing` knows; `packs`: the claims it refers to."""

    workflow_id: str
    checkpoint: Checkpoint | None = None
    files: dict[str, list[Any]] = field(default_factory=dict)
    packs: list[dict[str, str]] = field(default_factory=list)
    effects: str = hashlib.sha256(b"[]").hexdigest()
    """Hash of the effects in the checkpoint; at first there are none."""
    children: list[str] = field(default_factory=list)
    """Workflow ids of the agents and plans that have worked there for the plan: their effects count as its own."""


@dataclass(frozen=True)
class Home:
    """A plan's directory at this host."""

    path: Path
    token: str
    file: Path
    """Its record."""

    def read(self) -> Record:
        """The record. Raises OSError or ValueError if it is not there or damaged."""
        data = json.loads(self.file.read_bytes())
        found = data.pop("checkpoint")
        return Record(**data, checkpoint=found and Checkpoint.model_validate(found))

    def write(self, record: Record) -> None:
        """Write the record: whole, or not at all."""
        data = {**vars(record), "checkpoint": record.checkpoint and record.checkpoint.model_dump(mode="json")}
        if not record.children:
            del data["children"]  # so that workers from before there could be any can read it
        write_whole(self.file, json.dumps(data).encode())


@dataclass(frozen=True)
class Homes:
    """The directories of one host."""

    root: Path
    """PLANS_WORKSPACE, its real path."""
    records: Path

    def of(self, workspace: str) -> Home | None:
        """The plan's directory that a call works in; None if it is another directory, such as that of a bound step."""
        path = Path(workspace)
        found = _NAME.fullmatch(path.name)
        if found is None or path.parent != self.root:
            return None
        home = Home(path, found[2], self.records / f"{found[2]}.json")
        return home if home.file.exists() and path.is_dir() else None

    def make(self, workflow_id: str) -> Home:
        """A new, empty directory for a plan; its record is written when it is complete."""
        token = secrets.token_hex(6)
        path = self.root / f"{_safe(workflow_id)}@{token}"
        self.records.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
        return Home(path, token, self.records / f"{token}.json")

    def remove_others(self, workflow_id: str, kept: Home) -> None:
        """Remove the plan's earlier directories here: it has moved away since, and what they hold is not read again."""
        for path in self.root.glob(f"{_safe(workflow_id)}@*"):
            found = _NAME.fullmatch(path.name)
            if found and found[1] == _safe(workflow_id) and found[2] != kept.token:
                (self.records / f"{found[2]}.json").unlink(missing_ok=True)
                shutil.rmtree(path, ignore_errors=True)

    def remove(self, home: Home) -> None:
        """Remove a directory that could not be completed."""
        home.file.unlink(missing_ok=True)
        shutil.rmtree(home.path, ignore_errors=True)


def _safe(workflow_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", workflow_id)[:120]

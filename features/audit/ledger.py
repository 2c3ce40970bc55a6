"""The ledger of a state directory: one chain over all plans, so that a record that is missing is noticed.

A line says that a plan began, that its record was kept (with the record's head), or that something of it was pruned,
and by whom. Each holds the hash of the one before and is signed with the key of the state directory, like the seal of a
record. A ledger whose last lines were cut off is whole by itself: note its head elsewhere, or see that a record is kept
that has no line. Appended to by all processes, never rewritten.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field, ValidationError

from plansurvive.features.audit.entries import digest_of
from plansurvive.features.signing.model import content_of, is_by
from plansurvive.plans.model import Problem, Value
from plansurvive.plans.signature import Signature
from plansurvive.runtime.base.wait import locked
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key

FILE = "audit-ledger.jsonl"
KIND = "ledger"
"""Kind of the signature of a line."""
WAIT = 10.0
"""Seconds that another process may take to append."""
MAX_LINE = 16_384
ORIGIN = digest_of(["plans: ledger of audit records, 1"])
"""What the first line is bound to."""
MAX_PROBLEMS = 20


class Line(Value):
    """One line of the ledger."""

    number: int
    time: datetime
    action: Literal["began", "kept", "pruned"]
    workflow_id: str
    run_id: str = Field(default="", description="Of `began`: the run that was checked; of `kept`: the first run.")
    head: str = Field(default="", description="Of the record that was kept, or pruned.")
    by: str = Field(default="", description="Who pruned, at which machine.")
    text: str = Field(default="", description="What was pruned.")
    previous: str
    hash: str = ""
    signature: str = ""

    @property
    def content(self) -> bytes:
        """What is signed."""
        return content_of(KIND, self.workflow_id, self.run_id, self.hash, str(self.number), 0)

    def hashed(self) -> str:
        """The hash that it should have."""
        return digest_of(self.model_dump(mode="json", exclude_defaults=True, exclude={"hash", "signature"}))


@dataclass
class Ledger:
    """The ledger of a state directory, with its key."""

    path: Path
    key: Ed25519PrivateKey
    _began: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, settings: Settings) -> Ledger:
        """That of the settings' state directory. Raises SettingError for a key that others can read."""
        return cls(settings.state_dir / FILE, private_key(settings))

    def began(self, workflow_id: str, run_id: str) -> None:
        """Note that a plan began, once for each process and run. Raises OSError."""
        if (workflow_id, run_id) not in self._began:
            self._append("began", workflow_id, run_id=run_id)
            self._began.add((workflow_id, run_id))

    def kept(self, workflow_id: str, run_id: str, head: str) -> None:
        """Note that a record was written. Raises OSError."""
        self._append("kept", workflow_id, run_id=run_id, head=head)

    def pruned(self, workflow_id: str, text: str, head: str = "") -> None:
        """Note, before it is done, what this user removes of a plan. `head`: of its record, if that goes as well.

        Raises OSError.
        """
        user = str(os.geteuid())
        with suppress(KeyError, OSError):  # one without a name
            user = getpass.getuser()
        self._append("pruned", workflow_id, text=text, head=head, by=f"{user}@{platform.node()}")

    def _append(self, action: Literal["began", "kept", "pruned"], workflow_id: str, **more: str) -> None:
        with locked(self.path.with_suffix(".lock"), WAIT), self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 2 * MAX_LINE))
            tail = file.read()
            whole = tail[: tail.rfind(b"\n") + 1]
            if len(whole) < len(tail):  # a crash cut off the last line: it was never there
                file.truncate(size - len(tail) + len(whole))
            last = _line(whole.splitlines()[-1]) if whole else None
            number, previous = (last.number + 1, last.hash) if last else (1, ORIGIN)
            line = Line(number=number, time=datetime.now(UTC), action=action, workflow_id=workflow_id[:1_000],
                        previous=previous, **more)  # fmt: skip
            line = line.model_copy(update={"hash": line.hashed()})
            line = line.model_copy(update={"signature": self.key.sign(line.content).hex()})
            file.write(line.model_dump_json(exclude_defaults=True).encode() + b"\n")


def read(directory: Path) -> list[Line | None]:
    """The lines in order, None for one that cannot be read. Raises OSError."""
    try:
        return [_line(each) for each in (directory / FILE).read_bytes().splitlines()]
    except FileNotFoundError:
        return []


def broken(lines: Iterable[Line | None], key: str) -> list[Problem]:
    """What is wrong with the chain. `key`: public key of the state directory, hexadecimal."""
    found, previous = list[Problem](), ORIGIN
    for number, line in enumerate(lines, 1):
        if line is None or line.hashed() != line.hash:
            found.append(_problem("AUDIT_CHANGED", f"line {number} of the ledger is not as it was written"))
        elif line.number != number or line.previous != previous:
            found.append(_problem("AUDIT_BROKEN", f"line {number} of the ledger does not follow the one before it"))
        elif not _is_good(line, key):
            text = f"line {number} of the ledger is not signed by this state directory's key"
            found.append(_problem("AUDIT_SIGNATURE", text))
        previous = line.hash if line else ""
    return found[:MAX_PROBLEMS]


def _is_good(line: Line, key: str) -> bool:
    with suppress(ValidationError):
        return is_by(key, Signature(id="0" * 32, time=0, value=line.signature), line.content)
    return False


def _line(data: bytes) -> Line | None:
    try:
        return Line.model_validate(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _problem(code: str, message: str) -> Problem:
    return Problem(code=code, message=message)

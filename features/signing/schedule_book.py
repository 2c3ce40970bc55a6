"""What signatures of schedules count (PLANS_DECISIONS=signed): kept in the state directory, beside the key.

A schedule is signed once for all its runs. So a later deletion or update says from when on signatures of it count
(`since`), and each due time is good for one run (`is_first`). So is the signature of any other start, whatever the
clock says.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from plansurvive.features.signing.model import LATE, SCHEDULE_DAYS
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked

BOOK, USED = "schedules.json", "schedule-runs"
KEPT_SECONDS = (LATE + timedelta(days=SCHEDULE_DAYS + 1)).total_seconds()
"""How long what was used is remembered: longer than any signature counts."""
WAIT = 10.0
"""Seconds that another process may take to write it."""


class Marks(NamedTuple):
    """What is known of a schedule, in milliseconds since 1970."""

    since: int = 0
    """Signatures count that were made from then on."""
    signed: int = 0
    """Time of the newest signature."""


def since(directory: Path, workflow_id: str) -> int:
    """Milliseconds since 1970: signatures of the schedule that starts this workflow id count from then on."""
    return _marks(_read(directory), workflow_id).since


def revoke(directory: Path, workflow_id: str, now: int | None = None) -> None:
    """Let no signature of a schedule count that was made until now, nor by a clock that was ahead of it."""
    with _changing(directory) as known:
        marks = _marks(known, workflow_id)
        known[workflow_id] = marks._replace(since=max(_now(now), marks.since, marks.signed + 1))


def issue(directory: Path, workflow_id: str, now: int | None = None) -> int:
    """The time for a new signature of a schedule: now, or later where the clock was set back and it would not count."""
    with _changing(directory) as known:
        marks = _marks(known, workflow_id)
        made = max(_now(now), marks.since)
        known[workflow_id] = marks._replace(signed=max(made, marks.signed))
    return made


def _now(now: int | None) -> int:
    return int(time.time() * 1_000) if now is None else now


def _marks(known: Mapping[str, Any], workflow_id: str) -> Marks:
    return Marks(*known.get(workflow_id, ()))


def _read(directory: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((directory / BOOK).read_bytes()))
    except FileNotFoundError:
        return {}


@contextmanager
def _changing(directory: Path) -> Iterator[dict[str, Any]]:
    """The book, which is written when the block ends; no other process writes it meanwhile."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(directory / f"{BOOK}.lock", WAIT):
        known = _read(directory)
        yield known
        write_whole(directory / BOOK, json.dumps(known).encode(), ".schedules-")


def is_first(directory: Path, used: str, run_id: str) -> bool:
    """Whether this run is the first one that uses a due time, or a signature. Notes that it does.

    `used`: the workflow id that a schedule gives at that time, or the workflow id and the signature's id.
    """
    path = directory / USED / hashlib.sha256(used.encode()).hexdigest()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            file.write(run_id)
    except FileExistsError:
        return path.read_text() == run_id
    return True

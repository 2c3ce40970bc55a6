"""What signatures of schedules count (PLANS_DECISIONS=signed): kept in the state directory, beside the key.

A schedule is signed once for all its runs. So a later deletion or update says from when on signatures of it count
(`since`), and each due time is good for one run (`is_first`).
"""

from __future__ import annotations

import hashlib
import json
import time
from datetime import timedelta
from pathlib import Path

from plansurvive.plans.signatures import LATE, SCHEDULE_DAYS
from plansurvive.runtime.atomic_file import write_whole
from plansurvive.runtime.wait import locked

BOOK, USED = "schedules.json", "schedule-runs"
KEPT_SECONDS = (LATE + timedelta(days=SCHEDULE_DAYS + 1)).total_seconds()
"""How long a used due time is remembered: longer than any signature counts for it."""
WAIT = 10.0
"""Seconds that another process may take to write it."""


def since(directory: Path, workflow_id: str) -> int:
    """Milliseconds since 1970: signatures of the schedule that starts this workflow id count from then on."""
    try:
        return int(json.loads((directory / BOOK).read_bytes()).get(workflow_id, 0))
    except FileNotFoundError:
        return 0


def revoke(directory: Path, workflow_id: str) -> None:
    """Let no signature of a schedule count that was made until now."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(directory / f"{BOOK}.lock", WAIT):
        try:
            known = json.loads((directory / BOOK).read_bytes())
        except FileNotFoundError:
            known = {}
        known[workflow_id] = int(time.time() * 1_000)
        write_whole(directory / BOOK, json.dumps(known).encode(), ".schedules-")


def is_first(directory: Path, workflow_id: str, run_id: str) -> bool:
    """Whether this run is the first one of its workflow id, and so of its due time. Notes that it is."""
    path = directory / USED / hashlib.sha256(workflow_id.encode()).hexdigest()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            file.write(run_id)
    except FileExistsError:
        return path.read_text() == run_id
    return True

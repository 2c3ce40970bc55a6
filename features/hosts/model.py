"""What others note of the host of a run: who shares its place, as `children` does, and what its children left there.

Each move restores into a directory whose name is never used again, so a lost worker that comes back writes nothing that
counts; absolute paths do not survive a move. Rejected: one fixed directory, and a lease in the bucket (clocks, and a
fourth thing that can fail).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.plans.flow.batch_part import Family
from plansurvive.plans.hosts.host import Host, Placed
from plansurvive.plans.log import LogKind
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run


def arrived(run: Run, lost: Host, step_id: str | None, now: datetime) -> None:
    """Note what follows from the run's new place."""
    if run.host is None:
        return
    run.facts = run.facts.model_copy(update={"workspace": run.host.workspace})
    text = f"host '{lost.name}' is lost: the plan continues at '{run.host.name}' with the files of its last checkpoint"
    run.note(LogKind.WARNING, text, now, step_id)


def left_behind(host: Host | None) -> dict[str, Any]:
    """What the result of an ended child says of the place of its plan: the newest checkpoint, if it has one."""
    if host is None or not host.guest or host.checkpoint is None:
        return {}
    return {"checkpoint": host.checkpoint.model_dump(mode="json")}


def newest(host: Host, children: Mapping[str, Any]) -> Host:
    """The place with the newest checkpoint that the run or one of its ended children knows.

    `children`: their records as JSON, by step, theirs in them (`Run.agents`). A child whose plan ended before it could
    not tell the plan what its last steps have left.
    """
    for record in children.values():
        run = record.get("run", record) if isinstance(record, dict) else None
        if not isinstance(run, dict):
            continue
        try:
            kept = Parted(parts=run.get("parts") or {})
            placed, family = kept.known_part(Placed), kept.known_part(Family)
        except ValidationError:  # of another version of this program
            continue
        host = host.after(placed.host.checkpoint) if placed is not None and placed.host is not None else host
        host = newest(host, family.agents) if family is not None else host
    return host

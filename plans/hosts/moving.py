"""What a run knows of the newest checkpoint of its files when it is resumed at another host.

Each move restores into a directory whose name is never used again, so a lost worker that comes back writes nothing that
counts; absolute paths do not survive a move. Rejected: one fixed directory, and a lease in the bucket (clocks, and a
fourth thing that can fail).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plansurvive.plans.hosts.host import Host


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
            host = host.after(Host.model_validate(run["host"]).checkpoint) if run.get("host") else host
        except ValidationError:  # of another version of this program
            continue
        host = newest(host, run.get("agents") or {})
    return host

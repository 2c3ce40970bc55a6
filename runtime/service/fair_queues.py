"""Whether the embedded server hands out tasks by priority and in fair shares: always, but for data begun without that.

The server keeps the tasks that wait in fair queues in another table. Version 1.29 never looks into the first one again
once fairness is on, so what waits there at that moment would wait for ever. A file beside the data says that they
were begun with fairness.

Server 1.29.1 keeps the tasks of fair queues in another table and never reads the first again: of 20 waiting plans none
ran after `matching.enableFairness` was turned on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FAIR: Mapping[str, bool] = {"matching.useNewMatcher": True, "matching.enableFairness": True}
"""Dynamic configuration."""


def fair(database: Path | None) -> Mapping[str, bool]:
    """The dynamic configuration of a server with these data (None: in memory), which begin now if there are none."""
    if database is None:
        return FAIR
    mark = database.with_name(f"{database.name}.fair")
    if not database.exists():
        mark.touch(0o600)
    return FAIR if mark.exists() else {}

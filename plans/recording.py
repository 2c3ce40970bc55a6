"""Which files a run made or read: noted by the run itself from what its tools report, never from what a model says."""

from __future__ import annotations

import posixpath
from typing import Any

from plans.calls import Return
from plans.run import Run


def note_files(run: Run, step_id: str, returned: Return) -> None:
    """Add what one call read and wrote. A path is listed once per step."""
    state = run.steps[step_id]
    for path in returned.wrote:
        if path not in state.wrote:
            state.wrote.append(path)
    for path in [*returned.read, *returned.wrote]:
        run.known_files[path] = run.seq


def files_in(run: Run, args: dict[str, Any]) -> list[str]:
    """Those paths among a call's arguments that this run made or read."""
    texts = [value for value in args.values() if isinstance(value, str) and 0 < len(value) < 4_096]
    return [name for name in (relative(text, run.facts.workspace) for text in texts) if name in run.known_files]


def relative(path: str, workspace: str) -> str:
    """A path as the run lists it: relative to the workspace, without `.` and doubled slashes."""
    if workspace and path.startswith(workspace.rstrip("/") + "/"):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    return posixpath.normpath(path)

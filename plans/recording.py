"""Which files a step made or changed: noted by the run from what its tools report, never from what a model says."""

from __future__ import annotations

import posixpath

from plans.calls import Return
from plans.run import Run


def note_files(run: Run, step_id: str, returned: Return) -> None:
    """Add what one call wrote. A path is listed once per step."""
    state = run.steps[step_id]
    for path in returned.wrote:
        if path not in state.wrote:
            state.wrote.append(path)


def relative(path: str, workspace: str) -> str:
    """A path as the run lists it: relative to the workspace, without `.` and doubled slashes."""
    if workspace and path.startswith(workspace.rstrip("/") + "/"):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    return posixpath.normpath(path)

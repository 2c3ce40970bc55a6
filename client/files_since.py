"""Which steps of an ended plan read files that have changed since, so that resuming it reads these again.

Where no worker says so, nothing counts as changed: the steps keep what they read, and the new run says so when it
begins.
"""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.client import Client

from plansurvive.plans.execution.resume import ReadAgain, files_read, with_read_again
from plansurvive.plans.files.file_check import FilesSeen
from plansurvive.plans.run import Run
from plansurvive.runtime.sides import sides


async def files_since(client: Client, run: Run, queue: str, workspace: str | None = None) -> ReadAgain:
    """The run of an ended plan as it is to be resumed, after files have changed that its steps read.

    `queue`: the task queue of its workflow. `workspace`: the directory where it is to continue, if another one.
    """
    paths = files_read(run)
    directory = run.host.directory if run.host is not None else run.facts.directories.get("")
    place, known = (workspace, None) if workspace is not None else (run.facts.workspace, directory)
    seen = FilesSeen.of(run.files, place, run.facts.workspaces, known) if paths else FilesSeen(workspace="")
    seen = seen.model_copy(update={"stamps": {path: each for path, each in seen.stamps.items() if path in paths}})
    found = [await side.changed_files(client, run, queue, seen) for side in sides("changed")] if seen.stamps else []
    return with_read_again(run, [path for each in found for path in each], datetime.now(UTC))

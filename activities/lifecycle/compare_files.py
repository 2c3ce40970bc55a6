"""The activity `compare_files`: which files differ from their stamps. Read-only."""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio import activity

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.workspace.contents import stamp_at
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.files.file_check import FileDifferences, FilesSeen


@dataclass(frozen=True)
class FileComparer:
    """The activity, with the rules of this worker."""

    site: ToolEnvironment = field(default_factory=ToolEnvironment)

    @activity.defn(name="compare_files", no_thread_cancel_exception=True)
    def compare_files(self, seen: FilesSeen) -> FileDifferences:
        """The files that changed, and those that were deleted or can no longer be read.

        All are among the latter where the workspace is refused, or is another directory.
        """
        try:
            self.site.check(seen.workspace, seen.directory)
        except ToolError:
            return FileDifferences(deleted=list(seen.stamps))
        workspace = self.site.workspace(seen.workspace, seen.directory)
        now = {path: _stamp(workspace, path) for path in seen.stamps}
        changed = [path for path, stamp in seen.stamps.items() if (there := now[path]) and not stamp.is_same_as(there)]
        return FileDifferences(changed=changed, deleted=[path for path, stamp in now.items() if stamp is None])


def _stamp(workspace: Workspace, path: str) -> Stamp | None:
    try:
        with workspace.file(path) as place:
            return stamp_at(place)
    except (ToolError, OSError):
        return None

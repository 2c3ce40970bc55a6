"""What files are known to hold, as long as the file system says of them what it said when they were looked at.

A worker's memory of file contents by their marks: what a step read, wrote, or is about to write is kept (see
`activities.workspace.content_store`), so that what a later command makes of it can be shown and put back. Never more
than a hint: a file whose mark has changed is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

from activities.provenance.path_state import kept_state
from activities.provenance.scan import FOLDER as FOLDER_SIZE
from activities.provenance.scan import Mark, mark_of
from activities.workspace.content_store import ContentStore
from activities.workspace.workspace import Workspace
from plans.errors import ToolError
from plans.files.undo import FOLDER

MAX_STATES = 200_000


class KnownStates:
    """The states of paths, by workspace."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], tuple[Mark, str]] = {}

    def of(self, root: str, path: str, mark: Mark | None) -> str | None:
        """The state of a path that has this mark; None when it is not known."""
        if mark is not None and mark[1] == FOLDER_SIZE:
            return FOLDER
        known = self._states.get((root, path))
        return known[1] if known and known[0] == mark else None

    def remember(self, root: str, path: str, mark: Mark, state: str | None) -> None:
        """A path with this mark is in that state."""
        if len(self._states) > MAX_STATES:
            self._states.clear()
        if state is not None:
            self._states[root, path] = (mark, state)

    def keep(self, workspace: Workspace, paths: Iterable[str], preimages: ContentStore) -> None:
        """Learn the states of these paths now and keep their contents, as far as they are not too long."""
        for path in paths:
            mark = mark_at(workspace, path)
            if mark is None or mark[1] > preimages.max_file or self.of(workspace.root, path, mark) is not None:
                continue
            state = kept_state(workspace, path, preimages)
            if mark_at(workspace, path) == mark:  # nobody wrote it while we read
                self.remember(workspace.root, path, mark, state)


def mark_at(workspace: Workspace, path: str) -> Mark | None:
    """The mark of a path; None when nothing is there, or it leads out."""
    try:
        with workspace.file(path, follow=False) as place:
            return mark_of(place.status) if place.status else None
    except (ToolError, OSError):
        return None

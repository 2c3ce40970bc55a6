"""Cache of content hashes, valid while a file's (ctime, size, inode) is unchanged.

Records the content of files that a step read, wrote or is about to write (see `activities.workspace.content_store`), so
that the changes of a later command can be shown and undone. Only a cache: an entry whose mark has changed is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plansurvive.activities.provenance.path_state import kept_state
from plansurvive.activities.provenance.scan import FOLDER_SIZE, Mark, mark_of
from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.changes import FOLDER

MAX_STATES = 200_000


class KnownStates:
    """States of paths by workspace and path: the latest, and earlier ones while calls run that began with them."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], tuple[Mark, str]] = {}
        self._earlier: dict[tuple[str, str, Mark], str] = {}

    def of(self, root: str, path: str, mark: Mark | None) -> str | None:
        """The cached state of a path with this mark; None if unknown."""
        if mark is not None and mark[1] == FOLDER_SIZE:
            return FOLDER
        known = self._states.get((root, path))
        if known and known[0] == mark:
            return known[1]
        return self._earlier.get((root, path, mark)) if mark is not None else None

    def remember(self, root: str, path: str, mark: Mark, state: str | None) -> None:
        """Cache the state of a path with this mark."""
        if len(self._states) > MAX_STATES:
            self._states.clear()
        if state is None:
            return
        known = self._states.get((root, path))
        if known and known[0] != mark and len(self._earlier) < MAX_STATES:
            self._earlier[root, path, known[0]] = known[1]
        self._states[root, path] = (mark, state)

    def known(self, root: str, *marked: Mapping[str, Mark | None]) -> dict[str, str]:
        """The cached states of paths with these marks."""
        found = {}
        for (top, path), (mark, state) in list(self._states.items()):  # other threads add to them
            if top == root and any(marks.get(path) == mark for marks in marked):
                found[path] = state
        return found

    def recall(self, root: str, states: Mapping[str, str], *marked: Mapping[str, Mark | None]) -> None:
        """Cache what another process knew when a call that is still in progress began."""
        for path, state in states.items():
            for marks in marked:
                if (mark := marks.get(path)) is not None:
                    self._earlier[root, path, mark] = state

    def forget_earlier(self) -> None:
        """No call is in progress that may have begun with an earlier state."""
        self._earlier.clear()

    def keep(self, workspace: Workspace, paths: Iterable[str], preimages: ContentStore) -> None:
        """Hash these paths now and store their contents, up to the store's limit per file."""
        for path in paths:
            mark = mark_at(workspace, path)
            if mark is None or mark[1] > preimages.max_file or self.of(workspace.root, path, mark) is not None:
                continue
            state = kept_state(workspace, path, preimages)
            if mark_at(workspace, path) == mark:  # not written while we read it
                self.remember(workspace.root, path, mark, state)


def mark_at(workspace: Workspace, path: str) -> Mark | None:
    """The mark of a path; None if it does not exist or leads out of the workspace."""
    try:
        with workspace.recorded(path) as place:
            return mark_of(place.status) if place.status else None
    except (ToolError, OSError):
        return None

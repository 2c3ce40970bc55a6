"""Detects protected files that a command changed or created despite the sandbox, and warns.

Landlock cannot protect single files in a writable workspace, and no sandbox prevents creating one that did not exist.
Checked are all protected files of a snapshot and the direct entries of protected directories.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from plansurvive.activities.provenance.scan import SKIPPED, VERSIONED, Mark, mark_of
from plansurvive.activities.workspace.file_names import native, visible
from plansurvive.activities.workspace.git_folders import CONTINUED, GUARDED
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.text.lists import some

MAX_TOLD = 10


def guarded(root: str, protected: Iterable[str]) -> dict[str, Mark]:
    """Marks of protected files, of the entries of protected directories, and of what git will continue with.

    Paths are relative to the workspace.
    """
    known, found = set(protected), dict[str, Mark]()
    places = [each.removesuffix("hooks") for each in known if each.endswith("hooks")]
    later = [f"{place}{each}" for place in places if f"{place}commondir" in known for each in CONTINUED]
    for path in (*known, *later):
        with suppress(OSError):
            status = os.lstat(f"{root}/{native(path)}")
            if not stat.S_ISDIR(status.st_mode):
                found[path] = mark_of(status)
                continue
            with os.scandir(f"{root}/{native(path)}") as entries:
                for entry in entries:
                    found[f"{path}/{visible(entry.name)}"] = mark_of(entry.stat(follow_symlinks=False))
    return found


def warning(before: Mapping[str, Mark], after: Mapping[str, Mark]) -> str:
    """The warning for people; empty if no protected file changed."""
    touched = [path for path in dict.fromkeys([*before, *after]) if before.get(path) != after.get(path)]
    return _told("protected files were", touched)


def running_later(root: str, changed: Iterable[str], names: ProtectedNames) -> str:
    """The warning about files that may run code later and that commands may write; empty if none is among `changed`.

    Those that commands may not write are the business of `warning`.
    """
    above = [name for name in root.split("/") if name]
    reasons = ((path, names.reason(path.split("/"), above)) for path in changed)
    return _told("files that may run code later were", [path for path, found in reasons if found and not found.strict])


def out_of_sight(names: ProtectedNames, written: Iterable[str]) -> str:
    """The warning about protected files below folders that a scan skips, such as `node_modules`, by a trace."""
    touched = []
    for path in written:
        parts = path.split("/")
        at = next((number for number, part in enumerate(parts[:-1]) if part in SKIPPED), None)
        if at is None or parts[at] in VERSIONED:
            continue
        rest = parts[at + 1 :]
        inside = rest[rest.index(".git") + 1 :] if ".git" in rest else []
        if names.is_strict(rest) and (not inside or any("/".join(inside).startswith(each) for each in GUARDED)):
            touched.append(path)
    return _told("protected files were", touched)


def _told(what: str, touched: Sequence[str]) -> str:
    if not touched:
        return ""
    names = some(sorted(touched, key=_rank), MAX_TOLD, shown)
    return f"{what} created or changed while the command ran: {names}; check them"


def _rank(path: str) -> int:
    """The order in a warning: what git runs first, and last the samples that come with every repository."""
    if path.endswith(".sample"):
        return 2
    return 0 if ".git/" in path else 1

"""Journal of the files that opaque tools (such as commands) changed: one file per tool call in the state directory.

Changes made by file tools are in the effect log (`activities.workspace.effect_log`); the two together are the changes
of a plan. Beside the calls is which directory each workspace was, so that undo restores nothing in another one. Best
effort: entries that cannot be read are skipped, and a full disk does not fail a step.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.files.changes import CallChanges
from plansurvive.runtime.base.atomic_file import write_whole

UNDONE = "undone.json"
CHANGES = "changes"
"""Name of the directory of the journal in the state directory."""


def of_change(key: str, path: str) -> str:
    """The key of one of the changes of a call. No call's key has a line break."""
    return f"{key}\n{path}"


class Journal:
    """The journal in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known = dict[tuple[str, str], DirectoryIdentity]()

    def write(self, call: CallChanges) -> bool:
        """Store the changes of a call, replacing those of an earlier attempt. False if they could not be stored."""
        try:
            self._put(self._path(call.plan_id, call.key), call.model_dump_json(exclude_defaults=True))
        except OSError:
            return False
        return True

    def of_call(self, plan_id: str, key: str) -> CallChanges | None:
        """What was stored of a call; None: nothing that can be read."""
        with suppress(OSError, ValidationError):
            return CallChanges.model_validate_json(self._path(plan_id, key).read_bytes())
        return None

    def of_plan(self, plan_id: str) -> list[CallChanges]:
        """The changes of a plan's calls, oldest first."""
        calls: list[CallChanges] = []
        for path in self._folder(plan_id).glob("[!.]*.call"):
            with suppress(OSError, ValidationError):
                calls.append(CallChanges.model_validate_json(path.read_bytes()))
        return sorted(calls, key=lambda call: call.time)

    def knows(self, plan_id: str, workspace: str, directory: DirectoryIdentity | None) -> bool:
        """Whether it has noted which directory the plan changes files in, as far as that is known."""
        return directory is None or self._known.get((plan_id, workspace)) == directory

    def enter(self, plan_id: str, workspace: str, directory: DirectoryIdentity | None) -> None:
        """Note which directory a plan is about to change files in, once for all of its calls."""
        if directory is None or self.knows(plan_id, workspace, directory):
            return
        with suppress(OSError):
            self._put(self._directory_file(plan_id, workspace), directory.model_dump_json())
            self._known[plan_id, workspace] = directory

    def entered(self, plan_id: str, workspace: str) -> DirectoryIdentity | None:
        """The directory that a plan last changed files in under this path; None if that was not noted."""
        with suppress(OSError, ValidationError):
            return DirectoryIdentity.model_validate_json(self._directory_file(plan_id, workspace).read_bytes())
        return None

    def unnamed_since(self, since: int, paths: Collection[str]) -> set[str]:
        """Those of the absolute paths that no call changed whose entry was written since then (ns since the epoch)."""
        left = set(paths)
        for folder in _changed(self.directory, since):
            for path in _changed(Path(folder), since) if left else ():
                with suppress(OSError, ValidationError):
                    call = CallChanges.model_validate_json(Path(path).read_bytes())
                    left -= {f"{call.workspace}/{change.path}" for change in call.changes}
                    left = {each for each in left if not (call.more and each.startswith(f"{call.workspace}/"))}
        return left

    def mark_undone(self, plan_id: str, keys: Iterable[str], time: datetime) -> None:
        """Record that the changes of these calls were undone, or single ones of them (`of_change`)."""
        text = json.dumps({**self._undone(plan_id), **dict.fromkeys(keys, time.isoformat())})
        self._put(self._folder(plan_id) / UNDONE, text)

    def undone(self, plan_id: str) -> dict[str, datetime]:
        """The calls whose changes were undone, and the single changes of others (`of_change`), with the time."""
        return {key: datetime.fromisoformat(time) for key, time in self._undone(plan_id).items()}

    def _undone(self, plan_id: str) -> dict[str, str]:
        with suppress(OSError, ValueError):
            return dict(json.loads((self._folder(plan_id) / UNDONE).read_bytes()))
        return {}

    def _put(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, text.encode(), durable=False)  # an entry that a crash emptied is skipped

    def _folder(self, plan_id: str) -> Path:
        return self.directory / hashlib.sha256(plan_id.encode()).hexdigest()[:24]

    def _directory_file(self, plan_id: str, workspace: str) -> Path:
        name = hashlib.sha256(workspace.encode(errors="surrogateescape")).hexdigest()[:24]
        return self._folder(plan_id) / f"{name}.directory"

    def _path(self, plan_id: str, key: str) -> Path:
        return self._folder(plan_id) / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.call"


def _changed(directory: Path, since: int) -> list[str]:
    """The entries of a directory that changed since then."""
    with suppress(OSError), os.scandir(directory) as entries:
        return [entry.path for entry in entries if entry.stat().st_mtime_ns >= since]
    return []

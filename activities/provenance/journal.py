"""What the calls of opaque tools changed, kept in the state directory: one small file per call, replaced as a whole.

What file tools changed stands in the log of effects (`activities.workspace.effect_log`); both together are the changes
of a plan. A journal that cannot be read is left out, a full disk is no reason for a step to fail.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from plans.files.undo import CallChanges
from runtime.atomic_file import write_whole

UNDONE = "undone.json"


class Journal:
    """The calls in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, call: CallChanges) -> bool:
        """Keep what a call changed, in place of what an earlier attempt of it wrote. False: it could not be kept."""
        try:
            self._put(self._path(call.plan_id, call.key), call.model_dump_json(exclude_defaults=True))
        except OSError:
            return False
        return True

    def of_plan(self, plan_id: str) -> list[CallChanges]:
        """What the plan's calls changed, oldest first."""
        found: list[CallChanges] = []
        for path in self._folder(plan_id).glob("[!.]*.call"):
            with suppress(OSError, ValidationError):
                found.append(CallChanges.model_validate_json(path.read_bytes()))
        return sorted(found, key=lambda call: call.time)

    def mark_undone(self, plan_id: str, keys: Iterable[str], time: datetime) -> None:
        """The changes of these calls were taken back."""
        text = json.dumps({**self._undone(plan_id), **dict.fromkeys(keys, time.isoformat())})
        self._put(self._folder(plan_id) / UNDONE, text)

    def undone(self, plan_id: str) -> dict[str, datetime]:
        """The calls whose changes were taken back, and when."""
        return {key: datetime.fromisoformat(time) for key, time in self._undone(plan_id).items()}

    def _undone(self, plan_id: str) -> dict[str, str]:
        with suppress(OSError, ValueError):
            return dict(json.loads((self._folder(plan_id) / UNDONE).read_bytes()))
        return {}

    def _put(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, text.encode(), durable=False)  # a journal that a crash has emptied is left out

    def _folder(self, plan_id: str) -> Path:
        return self.directory / hashlib.sha256(plan_id.encode()).hexdigest()[:24]

    def _path(self, plan_id: str, key: str) -> Path:
        return self._folder(plan_id) / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.call"

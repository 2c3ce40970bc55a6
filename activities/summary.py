"""The activity `write_summary`: SUMMARY.md of a finished run, in the state directory, for people.

Atomic and repeatable: written to a temporary file beside it and renamed, so that a reader never sees half of it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from plans.calls import SummaryFile


@dataclass(frozen=True)
class SummaryWriter:
    """Keeps summaries under `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path

    @activity.defn(name="write_summary")
    def write_summary(self, file: SummaryFile) -> str:
        """Write the summary; returns its path. OSError (a full disk, say) is tried again by the activity's policy."""
        folder = self.directory / "runs" / Path(file.plan_id).name
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".summary-", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(file.markdown)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).replace(folder / "SUMMARY.md")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return str(folder / "SUMMARY.md")

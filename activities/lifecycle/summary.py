"""The activity `write_summary`: SUMMARY.md of a finished run, in the state directory, for people.

Atomic and repeatable: written to a temporary file beside it and renamed, so that a reader never sees half of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from plans.activity_io import SummaryFile
from runtime.atomic_file import write_whole


@dataclass(frozen=True)
class SummaryWriter:
    """Keeps summaries under `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path

    @activity.defn(name="write_summary")
    def write_summary(self, file: SummaryFile) -> str:
        """Write the summary; returns its path. OSError (a full disk, say) is tried again by the activity's policy."""
        folder = self.directory / "runs" / Path(file.plan_id).name
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "SUMMARY.md", file.markdown.encode(), ".summary-")
        return str(folder / "SUMMARY.md")

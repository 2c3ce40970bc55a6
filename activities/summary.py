"""The activity `write_summary`: SUMMARY.md of a finished run, in the state directory, for people.

The Run itself is handed back, so that it stands in the record of this activity: whoever looks at an ended plan reads it
there, at once and without a worker. The file is written beside its place and renamed, so that nobody ever reads half.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio import activity

from plans.calls import EndRecord, SummaryFile


@dataclass(frozen=True)
class SummaryWriter:
    """Keeps summaries under `directory`/runs/<plan id>/SUMMARY.md."""

    directory: Path
    largest: int | None = None
    """Bytes of a Run that history takes; None where large payloads are kept outside it."""

    @activity.defn(name="write_summary")
    def write_summary(self, file: SummaryFile) -> EndRecord:
        """Write the summary; returns the record. OSError (a full disk, say) is tried again by the activity's policy."""
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
        return EndRecord(path=str(folder / "SUMMARY.md"), run=file.run if self._fits(file.run) else None)

    def _fits(self, run: dict[str, Any] | None) -> bool:
        return self.largest is None or len(json.dumps(run)) <= self.largest

"""The activity that lists and undoes file changes, with the records of this worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plansurvive.activities.feature import InWorker
from plansurvive.activities.provenance.journal import CHANGES, Journal
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.files.file_changes import FileChanges


class Worker(InWorker):
    """File changes in a worker."""

    feature = "files"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`file_changes`."""
        settings = self.settings
        effects, journal = Effects.of(settings), Journal(settings.state_dir / CHANGES)
        rules, signed = WorkspaceRules.of(settings), settings.decisions == "signed"
        unproven, kept = self.others.unproven if signed else None, self.others.keeps_versions
        return (FileChanges(effects, journal, rules, unproven, kept).file_changes,)


IN_WORKER = Worker

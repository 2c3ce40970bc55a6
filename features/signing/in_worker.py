"""Whether the start of a workflow is by the owner of the worker's key, asked in an activity of that workflow."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity
from temporalio.client import Client

from plansurvive.activities.feature import InWorker
from plansurvive.plans import signatures
from plansurvive.plans.files.changes import ChangesRequest
from plansurvive.runtime import schedule_book
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import public_key


class Worker(InWorker):
    """Verifies with the key of the worker's state directory, which also notes what signatures were used."""

    feature = "signing"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError for a key that others can read."""
        super().__init__(client, settings, fault)
        self._key = public_key(settings)

    def unproven(self, request: ChangesRequest) -> str | None:
        """Why the undo is not the key owner's. Judged when it was scheduled, which a reset renews."""
        info, signature, key = activity.info(), request.signature, self._key
        if not key:
            return None
        name, content = info.workflow_id or "", b""
        if signature is not None:
            content = signatures.content_of(signatures.START, name, "", request.message, signature.id, signature.time)
        why = signatures.start_problem(key, signature, content, info.scheduled_time)
        if why or signature is None:
            return why
        used, run_id = f"{name} {signature.id}", info.workflow_run_id or ""
        return "" if schedule_book.is_first(self.settings.state_dir, used, run_id) else signatures.USED


IN_WORKER = Worker

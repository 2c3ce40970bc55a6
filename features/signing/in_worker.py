"""Whether the start of a workflow is by the owner of the worker's key, asked in an activity of that workflow."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity
from temporalio.client import Client

from plansurvive.activities.feature import InWorker
from plansurvive.features.signing import schedule_book
from plansurvive.features.signing.model import START, USED, SignedStart, SigningFacts, content_of, schedule_of
from plansurvive.features.signing.verification import start_problem
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.signature import Signature
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import public_key


class Worker(InWorker):
    """Verifies with the key of the worker's state directory, which also notes what signatures were used."""

    feature = "signing"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError for a key that others can read."""
        super().__init__(client, settings, fault)
        self._key = public_key(settings)

    def facts(self, request: CheckRequest) -> SigningFacts | None:
        """With what a plan verifies signatures; None if they are not asked for, and its start has none."""
        if not self._key and SignedStart.feature not in request.parts:
            return None
        return SigningFacts(key=self._key, since=self._since(request.part(SignedStart).id))

    def _since(self, signature: str) -> int | None:
        """From when on signatures of the plan's schedule count; None if the plan's start was used before."""
        info = activity.info()
        name, workflow_id = schedule_of(info.workflow_id or ""), info.workflow_id or ""
        if not name and not signature:
            return 0
        used = workflow_id if name else f"{workflow_id} {signature}"
        if not schedule_book.is_first(self.settings.state_dir, used, info.workflow_run_id or ""):
            return None
        return schedule_book.since(self.settings.state_dir, name) if name else 0

    def unproven(self, signature: Signature | None, message: str) -> str | None:
        """Why the start is not the key owner's. Judged when it was scheduled, which a reset renews."""
        info, key = activity.info(), self._key
        if not key:
            return None
        name, content = info.workflow_id or "", b""
        if signature is not None:
            content = content_of(START, name, "", message, signature.id, signature.time)
        why = start_problem(key, signature, content, info.scheduled_time)
        if why or signature is None:
            return why
        used, run_id = f"{name} {signature.id}", info.workflow_run_id or ""
        return "" if schedule_book.is_first(self.settings.state_dir, used, run_id) else USED


IN_WORKER = Worker

"""How long the signature of a schedule counts (PLANS_DECISIONS=signed), as its workers will judge it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from plansurvive.features.signing import schedule_book
from plansurvive.features.signing.model import SCHEDULE, SCHEDULE_DAYS, is_by, signed_bytes
from plansurvive.plans.model import Value
from plansurvive.plans.signature import signature_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import public_key

SOON = timedelta(days=30)
"""How long before its end an expiry is worth a warning."""
RENEW = "`plan schedule update NAME` signs it again"


class ScheduleSignature(Value):
    """The signature that the runs of a schedule are started with."""

    made: datetime | None = Field(default=None, description="When it was signed; null: it is not signed.")
    expires: datetime | None = Field(default=None, description="Until when it counts.")
    since: datetime | None = Field(
        default=None, description="Its generation: signatures made before the last update or deletion do not count."
    )
    problem: str = Field(default="", description="Why its runs ask for approvals all the same.")

    def text(self, now: datetime) -> str:
        """What people read of it; with what to do if it does not count, or not for long."""
        if self.problem:
            return f"does not count: {self.problem}; {RENEW}"
        until = f"counts until {self.expires:%Y-%m-%d}" if self.expires else ""
        return f"{until}, soon; {RENEW}" if self.is_soon(now) else until

    def is_soon(self, now: datetime) -> bool:
        """Whether it expires soon, or counts no more."""
        return bool(self.problem) or self.expires is None or self.expires - now < SOON


def judged(settings: Settings, workflow_id: str, request: Mapping[str, Any], now: datetime) -> ScheduleSignature | None:
    """What there is to say of the signature of a schedule that starts this workflow id; None if none is asked for."""
    if settings.decisions != "signed":
        return None
    found, since = signature_of(request), schedule_book.since(settings.state_dir, workflow_id)
    generation = datetime.fromtimestamp(since / 1_000, UTC) if since else None
    if found is None:
        return ScheduleSignature(since=generation, problem="it is not signed")
    made = datetime.fromtimestamp(found.time / 1_000, UTC)
    expires, problem = made + timedelta(days=SCHEDULE_DAYS), ""
    content = signed_bytes(SCHEDULE, workflow_id, "", request, found.id, found.time)
    if not is_by(public_key(settings), found, content):
        problem = "it is not by the key of this state directory"
    elif found.time < since:
        problem = "the schedule was changed or deleted after it was signed"
    elif expires < now:
        problem = f"it expired on {expires:%Y-%m-%d}"
    return ScheduleSignature(made=made, expires=expires, since=generation, problem=problem)

"""The rows of `plan doctor` about schedules: where decisions are signed, those whose signature no longer counts."""

from __future__ import annotations

from datetime import UTC, datetime

from plansurvive.apps.schedules.views import list_schedules
from plansurvive.client.doctor import Finding, Verdict
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings


async def findings(settings: Settings, connection: Connection) -> list[Finding]:
    """A row for each schedule whose signature does not count, or not for long; or one that says that all count."""
    if settings.decisions != "signed":
        return []
    now = datetime.now(UTC)
    try:
        found = [each async for each in list_schedules(connection.client, settings)]
    except PlanError as error:
        return [_finding(Verdict.WARNING, f"their signatures could not be read: {error.message}")]
    signed = [(each.name, each.signature) for each in found if each.signature is not None]
    wrong = [
        _finding(Verdict.WARNING, f"'{line(name)}': its signature {one.text(now).replace('NAME', line(name))}")
        for name, one in signed
        if one.is_soon(now)
    ]
    return wrong or [_finding(Verdict.GOOD, f"the signatures of {len(signed)} count")]


def _finding(verdict: Verdict, text: str) -> Finding:
    return Finding(subject="schedules", verdict=verdict, text=text)

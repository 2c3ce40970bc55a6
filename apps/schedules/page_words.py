"""Errors about a schedule in the words of the page: they name its fields, where the command names its options."""

from __future__ import annotations

import re

from plansurvive.apps.schedules.spec import BadSchedule
from plansurvive.plans.errors import PlanError

FIELDS = {
    "cron": "Cron", "every": "Every", "calendar": "Calendar", "timezone": "Time zone", "start": "No runs before",
    "end": "No runs after", "jitter": "Later by a random time up to",
    "catchup": "How late a missed run is still started",
    "overlap": "When a run is due while one is in progress", "from": "From", "to": "To",
}  # fmt: skip
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(FIELDS)})(?![\w-])")


def on_the_page(error: PlanError) -> PlanError:
    """The error as the page shows it."""
    if not isinstance(error, BadSchedule):
        return error
    return BadSchedule(_OPTION.sub(lambda found: f"“{FIELDS[found[1]]}”", error.message))

"""What an endpoint's Retry-After means."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from plansurvive.activities.network.retry_after import retry_after

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("", None),
        ("5", 5.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", math.inf),
        ("1e9", 1e9),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("tomorrow", None),
        ("Thu, 99 Jan 9999999 12:00:30 GMT", None),
    ],
)
def test_seconds_and_dates_are_understood_and_nonsense_is_not(given: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": given}, NOW) == seconds


def test_milliseconds_are_more_exact() -> None:
    assert retry_after({"retry-after": "5", "retry-after-ms": "4200"}) == 4.2

"""How long a server asks its callers to wait before they try again (`Retry-After`, RFC 9110 10.2.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait according to the headers, may be infinite; None if they do not say."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "")
    seconds = _number(given)
    if seconds is not None or not given:
        return seconds
    try:
        moment = parsedate_to_datetime(given)
        return max((moment.astimezone(UTC) - (now or datetime.now(UTC))).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else max(number, 0.0)

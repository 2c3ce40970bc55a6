"""A rate as text: `60/minute`, `10/second`, `1000/hour`, `5000/day`, or with a number of units, `100/15 minutes`."""

from __future__ import annotations

import re
from typing import NamedTuple

SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
MAX_AMOUNT = 1_000_000_000
MAX_WINDOW = 7 * 86_400
"""Seconds; what was used is remembered for so long."""
_RATE = re.compile(r"\s*([0-9][0-9_,]{0,14})\s*/\s*(?:([0-9]{1,6})\s+)?(second|minute|hour|day)s?\s*")


class Rate(NamedTuple):
    """At most `amount` in any period of `seconds`."""

    amount: int
    seconds: int

    @property
    def text(self) -> str:
        """The rate as a file says it."""
        name, unit = next((n, s) for n, s in reversed(SECONDS.items()) if self.seconds % s == 0)
        count = self.seconds // unit
        return f"{self.amount}/{name}" if count == 1 else f"{self.amount}/{count} {name}s"


def rate_of(text: str) -> Rate:
    """The rate that a text says. Raises ValueError with what to write instead."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:100]!r} is not a rate; write a number per unit, such as 60/minute or 10/second")
    amount = int(match[1].replace("_", "").replace(",", ""))
    seconds = int(match[2] or 1) * SECONDS[match[3]]
    if not 1 <= amount <= MAX_AMOUNT:
        raise ValueError(f"{text!r}: the number must be between 1 and {MAX_AMOUNT:,}")
    if not 1 <= seconds <= MAX_WINDOW:
        raise ValueError(f"{text!r}: the period must be between 1 second and 7 days")
    return Rate(amount, seconds)

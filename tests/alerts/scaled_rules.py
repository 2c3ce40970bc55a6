"""The alert rules as they are, but for time: a minute lasts two seconds, and a few thresholds are those of a test.

What is changed, and nothing else: `for`, the windows of functions (`[15m]`), offsets, and the numbers of seconds in
THRESHOLDS. A rule with a number of seconds that is not listed there is refused, so a new rule cannot stay as slow as it
is unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

MINUTE = 2
"""Seconds that stand for a minute."""
THRESHOLDS = {"900": str(15 * MINUTE), "86400": "15", "30": "5"}
"""Seconds in expressions, and in their place: a quarter of an hour, as the windows; a decision that waits for a day; a
step that waits for a worker (both are bounds of the histogram's buckets)."""
COUNTS = {"0", "1", "3", "10", "0.5", "0.95"}
"""Numbers that are no times."""
_UNITS = {"s": 1 / 60, "m": 1.0, "h": 60.0}
_DURATION = re.compile(r"\b(\d+)([smh])\b")
_NUMBER = re.compile(r"(?<![\w.\"])\d+(?:\.\d+)?(?![\w.\"])")


def scaled(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a file of rules in this time. Raises ValueError for a number that it does not know."""
    found = deepcopy(dict(rules))
    for group in found["groups"]:
        for rule in group["rules"]:
            rule["expr"] = _expression(rule["expr"])
            if "for" in rule:
                rule["for"] = _durations(rule["for"])
    return found


def _expression(text: str) -> str:
    def threshold(found: re.Match[str]) -> str:
        if found[0] not in THRESHOLDS and found[0] not in COUNTS:
            raise ValueError(f"{found[0]} in {text!r}: say in THRESHOLDS or COUNTS what it is")
        return THRESHOLDS.get(found[0], found[0])

    return _durations(_NUMBER.sub(threshold, text))


def _durations(text: str) -> str:
    return _DURATION.sub(lambda found: f"{round(int(found[1]) * _UNITS[found[2]] * MINUTE)}s", text)

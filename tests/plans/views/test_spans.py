"""Time spans in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plansurvive.plans.text.spans import in_words, left

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.5, "0.5 s"), (45, "45 s"), (60, "1 min"), (720, "12 min"), (5400, "90 min"), (7200, "2 h")),
        *((259_200, "3 d"), (119.6, "120 s"), (595.8, "9 min 56 s"), (7199.7, "120 min"), (9_000, "2 h 30 min")),
        *((86_399, "24 h"), (172_799, "48 h"), (183_600, "2 d 3 h"), (31_536_000, "365 d")),
    ],
)
def test_spans_are_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
    assert left(NOON + timedelta(seconds=seconds), NOON) == f"in {words}"
    assert left(NOON, NOON) == "now"

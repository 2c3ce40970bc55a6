"""Signatures of schedules where the clock was ahead, or is set back: none that was revoked counts again."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.features.signing.schedule_book import is_first, issue, revoke, since

NOW, HOUR = 1_800_000_000_000, 3_600_000


@pytest.mark.parametrize("ahead", [0, HOUR, 24 * HOUR])
def test_what_was_signed_before_counts_no_more_although_the_clock_was_set_back(tmp_path: Path, ahead: int) -> None:
    old = issue(tmp_path, "plan-a", NOW + ahead)
    assert old == NOW + ahead
    assert since(tmp_path, "plan-a") <= old  # control: until it is revoked, it counts
    revoke(tmp_path, "plan-a", NOW)
    assert since(tmp_path, "plan-a") > old - (ahead == 0)
    renewed = issue(tmp_path, "plan-a", NOW)
    assert renewed >= since(tmp_path, "plan-a"), "the new one counts at once"
    revoke(tmp_path, "plan-a", NOW - 100 * HOUR)
    assert since(tmp_path, "plan-a") > renewed
    assert since(tmp_path, "plan-b") == 0


def test_a_due_time_is_used_whatever_the_clock_says(tmp_path: Path) -> None:
    assert is_first(tmp_path, "plan-a-2026-01-01T00:00:00Z", "one")
    assert not is_first(tmp_path, "plan-a-2026-01-01T00:00:00Z", "two")
    assert is_first(tmp_path, "plan-a-2026-01-01T00:00:00Z", "one")

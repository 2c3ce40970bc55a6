"""When the history of a plan is full: as the server suggests, later with many steps, and never near its limits."""

from __future__ import annotations

import pytest

from plansurvive.plans.execution.history_limit import HARD_BYTES, HARD_EVENTS, HistoryLimit


@pytest.mark.parametrize(
    ("steps", "events", "room"),
    [(100, 4_100, False), (2_000, 4_100, False), (3_000, 4_100, True), (3_000, 6_000, False), (20_000, 9_999, True)],
)
def test_the_history_of_a_plan_with_many_steps_may_pass_the_suggestion(steps: int, events: int, room: bool) -> None:
    assert HistoryLimit().has_room(events, 1_000_000, steps) is room


def test_no_history_grows_near_what_the_server_refuses() -> None:
    limit = HistoryLimit()
    assert not limit.has_room(HARD_EVENTS // 2, 0, 1_000_000)
    assert not limit.has_room(5_000, HARD_BYTES // 2, 1_000_000)
    assert limit.is_near_the_end(HARD_EVENTS, 0)
    assert limit.is_near_the_end(0, HARD_BYTES)


def test_a_limit_that_a_client_sets_holds_whatever_the_number_of_steps() -> None:
    assert HistoryLimit(10).is_full(lambda: 10, suggested=False)
    assert not HistoryLimit(10).has_room(10, 0, 1_000_000)

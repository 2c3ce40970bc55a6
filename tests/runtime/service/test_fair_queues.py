"""Fairness is for data that were begun with it: the server would never find again what waits in other queues."""

from __future__ import annotations

from pathlib import Path

from plansurvive.runtime.server import flags
from plansurvive.runtime.service.fair_queues import FAIR, fair


def test_data_that_begin_now_are_fair_and_stay_so(tmp_path: Path) -> None:
    database = tmp_path / "temporal.db"
    assert fair(database) == FAIR
    database.touch()
    assert fair(database) == FAIR


def test_data_begun_without_fairness_stay_without(tmp_path: Path) -> None:
    database = tmp_path / "temporal.db"
    database.touch()
    assert fair(database) == {}
    assert not any("enableFairness" in each for each in flags(1, 2, database))


def test_a_server_in_memory_is_fair() -> None:
    assert "matching.enableFairness=true" in flags(1, 2, None)

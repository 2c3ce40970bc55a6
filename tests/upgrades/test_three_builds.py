"""A plan begun on any release ends on a later one: three builds, plans in flight, one rollback, workers that go."""

from __future__ import annotations

import os

import pytest

from tests.upgrades.fleet import story

PLANS = int(os.environ.get("PLANS_FLEET", "6"))
"""How many plans are in flight; 100 for the figures in docs/upgrades.md."""


@pytest.mark.slow
async def test_plans_begun_on_three_releases_end_none_stuck_none_lost_and_no_step_twice() -> None:
    found = await story(PLANS)
    assert found["ended"] == {"completed": PLANS}, found
    assert not found["twice"], found

"""Fixtures of pytest: put `pytest_plugins = ["plansurvive.client.testing.fixtures"]` into your conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plansurvive.client.testing.tester import PlanTester


@pytest.fixture(scope="session")
def plan_tester() -> Iterator[PlanTester]:
    """A server for all tests of the session, and a worker for each plan."""
    with PlanTester() as tester:
        yield tester

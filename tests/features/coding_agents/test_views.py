"""What `plan show` says of the step of a coding agent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.coding_agents.in_views import IN_VIEWS, cost_of
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Status, StepState

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def details(value: Any) -> list[str]:
    """The rows about a step that has ended with this value."""
    state = StepState(status=Status.COMPLETED, calls=1, result=Result(ok=True, value=value, timestamp=NOW))
    assert IN_VIEWS.details is not None
    return list(IN_VIEWS.details("p", Step(id="code", tool="coding_agent", args={}), state))


def test_its_agent_and_what_it_says_that_its_work_has_cost() -> None:
    assert details({"text": "done", "usage": {"cost": 0.0235, "currency": "USD", "totalTokens": 10}}) == [
        "Coding agent: plan show agent-p-code", "Cost: 0.0235 USD, as the agent says",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "value", ["text", None, {}, {"usage": None}, {"usage": {"cost": True}}, {"usage": {"cost": "1"}}, {"usage": []}]
)
def test_an_agent_that_reports_no_cost_has_no_such_row(value: Any) -> None:
    assert details(value) == ["Coding agent: plan show agent-p-code"]


def test_the_line_that_opens_its_session_is_shown() -> None:
    assert details({"open": "cd /w && HOME=/h claude --resume abc"})[1:] == [
        "Its session: cd /w && HOME=/h claude --resume abc"
    ]


def test_a_currency_is_one_short_line() -> None:
    assert cost_of({"usage": {"cost": 1, "currency": "US\nD" + "x" * 100}}) == "1 US D" + "x" * 16

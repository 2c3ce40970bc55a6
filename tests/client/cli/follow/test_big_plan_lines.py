"""Big plans as plain lines: progress, failures, questions; small ones step by step."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.cli.follow.big_plan_lines import EACH, FULL, Digest
from plansurvive.client.runs import BriefView, EventView
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.models import BriefStep
from plansurvive.plans.views.progress.events import LogLine
from tests.plans.building import NOW


def digest(count: int) -> Digest:
    steps = [BriefStep(id=f"s{index}", tool="work") for index in range(count)]
    return Digest("big", BriefView(id="big", status=PlanStatus.RUNNING, steps=steps))


def event(step_id: str, status: str, **more: Any) -> EventView:
    return EventView(seq=1, time=NOW, task_id="big", step_id=step_id, status=status, **more)


def told(lines: Digest, count: int, *statuses: str) -> list[str]:
    return [row for index in range(count) for status in statuses for row in lines.of(event(f"s{index}", status))]


def test_a_small_plan_is_told_step_by_step() -> None:
    assert len(told(digest(FULL), FULL, "running", "completed")) == 2 * FULL


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_big_plan_is_told_in_twenty_lines_of_progress() -> None:
    rows = told(digest(10_000), 10_000, "ready", "running", "completed")
    assert len(rows) == 20
    assert rows[0].endswith("500 of 10,000 steps: 500 completed")
    assert rows[-1].endswith("10,000 of 10,000 steps: 10,000 completed")


def test_the_first_failures_of_a_big_plan_are_told_singly() -> None:
    rows = told(digest(1_000), 1_000, "ready", "running", "failed")
    assert sum("✗" in row for row in rows) == EACH
    assert sum("plan show big" in row for row in rows) == 1
    assert len(rows) == EACH + 1 + 20


def test_questions_of_a_big_plan_are_told() -> None:
    rows = digest(1_000).of(event("s0", "ready", awaiting="approval"))
    assert any("plan approve big s0" in row for row in rows)


def test_what_concerns_the_plan_is_always_told() -> None:
    lines = digest(1_000)
    log = LogLine(time=NOW, kind="paused", text="paused by ann")
    rows = [row for _ in range(100) for row in lines.of(event("", "paused", logs=[log]))]
    assert len(rows) == 100

"""Big plans shown in part: which steps, and what is said of the others."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.views.models import BriefStep
from plansurvive.plans.views.steps.abridged import chosen, folded


def step(name: str, status: str, **more: Any) -> BriefStep:
    return BriefStep.model_validate({"id": name, "tool": "note", "status": status} | more)


def many(count: int, status: str) -> list[BriefStep]:
    return [step(f"{status}{index}", status) for index in range(count)]


def test_all_steps_are_shown_when_they_fit() -> None:
    assert chosen(many(5, "blocked"), 5) == [0, 1, 2, 3, 4]


def test_what_moves_comes_before_what_waits_and_the_plan_s_order_is_kept() -> None:
    moving = [step("a", "failed"), step("b", "running")]
    found = [*many(3, "blocked"), *moving, *many(3, "blocked"), step("c", "ready", awaiting="approval")]
    assert [found[index].id for index in chosen(found, 4)] == ["a", "b", "c"]


def test_of_the_done_steps_the_latest_are_shown() -> None:
    done = [step("a", "completed", endedAt=f"2026-01-01T00:00:{index:02}Z") for index in range(9)]
    assert chosen(done, 3) == [7, 8]


def test_the_others_are_counted_the_most_first() -> None:
    assert folded(["failed"] * 2 + ["blocked"] * 1_200) == "… and 1,200 blocked, 2 failed"

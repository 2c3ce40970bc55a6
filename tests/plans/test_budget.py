"""Budgets of LLM calls: sums, warning, asking, stopping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.budget import Budget, Ledger, Usage, decide


def used(calls: int = 0, tokens: int = 0) -> Usage:
    return Usage(calls=calls, prompt_tokens=tokens, total_tokens=tokens)


def test_usage_adds_up_by_step_and_by_model() -> None:
    ledger = Ledger().plus(used(1, 10), model="small")
    ledger = ledger.plus(used(1, 20), model="big", step_id="a").plus(used(1, 5), model="big", step_id="a")
    assert ledger.total == used(3, 35)
    assert ledger.by_step == {"": used(1, 10), "a": used(2, 25)}
    assert ledger.by_model == {"small": used(1, 10), "big": used(2, 25)}


def test_a_ledger_survives_its_json() -> None:
    ledger = Ledger().plus(used(1, 10), model="m", step_id="a")
    assert Ledger.model_validate_json(ledger.model_dump_json()) == ledger


@pytest.mark.parametrize(
    ("calls", "verdict"), [(0, "ok"), (39, "ok"), (40, "warn"), (49, "warn"), (50, "ask"), (60, "ask")]
)
def test_a_limit_first_warns_then_asks(calls: int, verdict: str) -> None:
    assert decide(Budget(calls=50), used(calls)).verdict == verdict


def test_call_51_of_50_is_stopped_when_nobody_may_be_asked() -> None:
    judged = decide(Budget(calls=50, ask=False), used(50))
    assert judged.verdict == "stop"
    assert judged.reason == "50 of 50 calls of the LLM budget are spent"


def test_a_persons_yes_raises_every_limit_and_a_no_is_final() -> None:
    budget = Budget(calls=10, tokens=1_000, seconds=60)
    assert decide(budget, used(10)).verdict == "ask"
    assert decide(budget.granted(), used(10)).verdict == "ok"
    assert decide(budget.granted(), used(16)).verdict == "ask"
    assert decide(budget.refused(), used(10)).verdict == "stop"


def test_the_limit_nearest_to_its_end_decides() -> None:
    judged = decide(Budget(calls=100, tokens=1_000, seconds=10), used(1, 990), seconds=1)
    assert (judged.verdict, judged.reason) == ("warn", "990 of 1,000 tokens of the LLM budget are spent")
    assert decide(Budget(calls=None, seconds=10), used(1_000), seconds=11).verdict == "ask"


def test_without_limits_nothing_is_ever_wrong() -> None:
    assert decide(Budget(calls=None), used(10**6, 10**9), 1e9).verdict == "ok"


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_spending_more_never_makes_the_verdict_milder(limit: int, spent: int, more: int) -> None:
    order = ["ok", "warn", "ask"]
    budget = Budget(calls=None, tokens=limit)
    before, after = decide(budget, used(1, spent)), decide(budget, used(2, spent + more))
    assert order.index(before.verdict) <= order.index(after.verdict)

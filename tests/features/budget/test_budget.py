"""Budgets of LLM calls: sums, warning, asking, stopping; and one budget for requests side by side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plansurvive.features.budget.model import granted, settle
from plansurvive.features.budget.rules import RULES, decide, extended, judge
from plansurvive.plans.model import Budget
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.usage import Account, Ledger, Position, Spent, Usage
from tests.plans.building import run_of, step


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
    assert decide(granted(budget), used(10)).verdict == "ok"
    assert decide(granted(budget), used(16)).verdict == "ask"
    run = run_of(step("a"))
    run.plan, run.llm_calls = run.plan.model_copy(update={"id": "p", "budget": budget}), 10
    rules = RuleSet([RULES])
    assert rules.permission(run, own=True).verdict == "ask"
    settle(run, None)
    assert rules.permission(run, own=True).verdict == "stop"
    raised = run.plan
    run.plan = run.plan.model_copy(update={"id": "p-run-2"})
    assert rules.permission(run, own=True).verdict == "ask", "a run that continues it asks again"
    run.plan = raised.model_copy(update={"budget": budget.model_copy(update={"tokens": 2_000})})
    rules.edited(run, raised)
    assert rules.permission(run, own=True).verdict == "ask", "somebody has edited the limits since"


def test_children_are_limited_by_a_budget_of_the_plan_and_by_no_default() -> None:
    run, rules = run_of(step("a")), RuleSet([RULES])
    run.llm_calls = 50
    assert not rules.limits_children(run)
    assert rules.permission(run, own=False).verdict == "ok"
    assert rules.permission(run, own=True).verdict == "ask"
    assert NO_RULES.permission(run, own=True).verdict == "ok"
    run.plan = run.plan.model_copy(update={"budget": Budget()})
    assert rules.limits_children(run)
    assert rules.permission(run, own=False).verdict == "ask"


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


def spent(tokens: int, calls: int = 1, model: str = "m", largest: int = 0) -> Spent:
    return Spent(by_model={model: used(calls, tokens)}, largest=largest or tokens, seconds=1.0, longest=1.0)


def test_a_report_replaces_the_one_before_so_that_nothing_counts_twice() -> None:
    ledger = Ledger().plus(used(1, 10), model="m").account("a", Account(child="agent-a"))
    once = ledger.reported("a", spent(100))
    assert once.reported("a", spent(100)) == once
    later = once.reported("a", spent(300, calls=2))
    assert (later.total, later.by_step["a"], later.agents) == (used(3, 310), used(2, 300), 2)
    assert later.by_model == {"m": used(3, 310)}


def test_a_wrong_report_is_corrected_by_the_next_one() -> None:
    ledger = Ledger().account("a", Account(child="agent-a")).reported("a", spent(10**9, calls=10**6, model="forged"))
    corrected = ledger.reported("a", spent(100))
    assert (corrected.total, corrected.by_model, corrected.agents) == (used(1, 100), {"m": used(1, 100)}, 1)


def test_what_a_resumed_agent_had_spent_before_is_not_added_again() -> None:
    before = spent(500, calls=5)
    ledger = Ledger().plus(used(5, 500), model="m", step_id="a").account("a", Account(child="agent-a-2", spent=before))
    assert ledger.reported("a", before).total == used(5, 500)
    assert ledger.reported("a", spent(700, calls=6)).total == used(6, 700)


def test_a_granted_call_counts_before_it_ends() -> None:
    ledger = Ledger().plus(used(1, 10), model="m")
    asking = ledger.account("a", Account(child="agent-a", granted=1, estimate=5))
    assert judge(Budget(calls=2, ask=False), asking.position(1, 0.0)).verdict == "stop"
    assert judge(Budget(calls=3, ask=False, warn_at=1), asking.position(1, 0.0)).verdict == "ok"


def test_near_the_limit_of_tokens_or_seconds_requests_go_one_by_one() -> None:
    open_one = Position(spent=used(1, 500), seconds=1.0, uncounted=1, sizes=[400], longest=1.0)
    assert judge(Budget(tokens=1_000), open_one).verdict == "ok"
    assert judge(Budget(tokens=900), open_one).verdict == "wait"
    assert judge(Budget(tokens=900), open_one.model_copy(update={"sizes": [], "uncounted": 0})).verdict == "ok"
    assert judge(Budget(seconds=9), open_one).verdict == "ok"
    assert judge(Budget(seconds=2), open_one).verdict == "wait"
    assert judge(Budget(seconds=9), open_one.model_copy(update={"longest": 0.0})).verdict == "wait"


def test_an_extended_budget_is_beyond_what_is_spent() -> None:
    position = Position(spent=used(5, 9_000), seconds=40.0)
    more = extended(Budget(calls=2, tokens=100, seconds=10), position)
    assert decide(more, position.spent, position.seconds).verdict in ("ok", "warn")


def test_an_extended_budget_is_raised_by_half_whatever_is_under_way() -> None:
    budget = Budget(calls=4, tokens=100, seconds=10)
    for position in (Position(spent=used(4, 90)), Position(spent=used(2, 50), uncounted=2, seconds=8.0)):
        more = extended(budget, position)
        assert (more.calls, more.tokens, more.seconds) == (6, 150, 15.0)


@given(st.data())
def test_however_requests_interleave_all_together_exceed_a_limit_by_one_request_at_most(data: st.DataObject) -> None:
    largest = data.draw(st.integers(1, 1_000), label="largest request")
    budget = Budget(
        tokens=data.draw(st.none() | st.integers(1, 10_000), label="tokens"),
        calls=data.draw(st.none() | st.integers(1, 20), label="calls"),
        ask=False,
    )
    names = [f"s{number}" for number in range(data.draw(st.integers(1, 6), label="agents"))]
    ledger = Ledger()
    for name in names:
        ledger = ledger.account(name, Account(child=name))
    total, calls, own, own_open = 0, 0, 0, 0
    for _ in range(data.draw(st.integers(1, 60), label="moves")):
        verdict = judge(budget, ledger.position(own, 0.0)).verdict
        who = data.draw(st.sampled_from(["", *names]), label="who")
        size = data.draw(st.integers(0, largest), label="tokens of the request")
        account = ledger.accounts.get(who)
        if account is None and own_open:
            ledger, total, own_open = ledger.closed("own").plus(used(1, size), model="m"), total + size, 0
        elif account is None and verdict in ("ok", "warn"):
            ledger, own, own_open, calls = ledger.opened("own", largest), own + 1, 1, calls + 1
        elif account is not None and account.is_open:
            told = account.spent.total
            ledger = ledger.reported(who, spent(told.total_tokens + size, told.calls + 1, largest=size))
            ended = ledger.accounts[who].model_copy(update={"finished": account.granted})
            ledger, total = ledger.account(who, ended), total + size
        elif account is not None and verdict in ("ok", "warn"):
            granted = account.model_copy(update={"granted": account.finished + 1, "estimate": largest})
            ledger, calls = ledger.account(who, granted), calls + 1
        assert budget.calls is None or calls <= budget.calls
        assert budget.tokens is None or total < budget.tokens + largest
    assert ledger.total.total_tokens == total


def paid(**cost: float) -> Usage:
    return Usage(cost=cost)


def test_costs_add_up_by_currency_and_are_left_out_where_none_are_known() -> None:
    ledger = Ledger().added(paid(USD=0.1), "a", "x").added(paid(USD=0.2, EUR=0.5), "b", "y").added(used(1, 10), "m", "")
    assert ledger.total.cost == {"USD": 0.3, "EUR": 0.5}
    assert ledger.to_json(0.0)["costByStep"] == {"x": {"USD": 0.1}, "y": {"USD": 0.2, "EUR": 0.5}}
    assert ledger.total.in_words(" tokens") == "10 tokens in 1 LLM request, 0.5 EUR, 0.3 USD"
    assert ledger.total.minus(paid(USD=0.3)).cost == {"EUR": 0.5}
    assert "cost" not in used(1, 10).model_dump()
    assert "cost" not in str(Ledger().plus(used(1, 10), model="m").to_json(0.0))
    assert Ledger.model_validate_json(ledger.model_dump_json()) == ledger


def test_a_limit_of_cost_holds_each_currency_and_is_raised_by_half() -> None:
    budget = Budget(cost=2)
    assert decide(budget, paid(USD=1.5, EUR=1.5)).verdict == "ok"
    assert decide(budget, paid(USD=1.7, EUR=1)).reason == "1.7 of 2 USD of the LLM budget are spent"
    judged = decide(budget, paid(EUR=2.5), plan="p")
    assert (judged.verdict, judged.remedy) == ("ask", "raise it with: plan resume p --set budget.cost=N")
    more = extended(budget, Position(spent=paid(EUR=2.5)))
    assert (more.cost, decide(more, paid(EUR=2.5)).verdict) == (3.5, "ok")


@pytest.mark.parametrize(
    "cost", [{"USD": amount} for amount in (-1, float("inf"), float("nan"), 1e13)] + [{"x" * 21: 1}]
)
def test_a_report_of_an_impossible_cost_is_refused(cost: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Spent.model_validate({"byModel": {"m": {"cost": cost}}})

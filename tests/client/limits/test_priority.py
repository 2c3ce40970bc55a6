"""What a plan is started with: its own priority and fairness key, those of the options, or who starts it."""

from __future__ import annotations

import pytest
from temporalio.common import Priority

from plansurvive.client.priority import MAX_KEY, fairness_of, of_another, priority_of
from plansurvive.features.limits.model import LimitRow
from plansurvive.features.limits.views import in_words
from plansurvive.plans.model import Plan
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.run import Options

PLAN = Plan.model_validate(
    {"steps": [{"id": "a", "tool": "read_file"}], "priority": 2, "fairness": {"key": "team", "weight": 2.0}}
)
PLAIN = Plan.model_validate({"steps": [{"id": "a", "tool": "read_file"}]})


def test_options_come_before_the_plan_and_the_person_is_the_key_where_neither_names_one() -> None:
    assert priority_of(PLAN, None) == Priority(2, "team", 2.0)
    given = Options(priority=1, fairness=Fairness(key="other"), by="ann")
    assert priority_of(PLAN, given) == Priority(1, "other")
    assert priority_of(PLAIN, Options(by="ann")) == Priority(None, "ann")
    assert priority_of(None, None) == Priority()


def test_a_long_key_is_represented_by_its_digest() -> None:
    keys = {priority_of(PLAIN, Options(by="é" * 100 + str(number))).fairness_key for number in range(3)}
    assert len(keys) == 3
    assert all(key and len(key.encode()) <= MAX_KEY for key in keys)


@pytest.mark.parametrize("own", [1, 2, 3, None])
def test_a_plan_that_an_agent_starts_overtakes_nobody_and_uses_its_own_share(own: int | None) -> None:
    plan = PLAN.model_copy(update={"priority": own})
    found = of_another(plan, "agent x")
    assert found == {"priority": 3, "fairness": Fairness(key="agent x"), "timeout": None}


def test_a_plan_that_an_agent_starts_may_wait_for_others() -> None:
    assert of_another(PLAN.model_copy(update={"priority": 5}), "agent x")["priority"] == 5


@pytest.mark.parametrize(
    ("text", "key", "weight"), [("team", "team", 1.0), ("team=2.5", "team", 2.5), ("a=b=3", "a=b", 3.0)]
)
def test_a_key_is_written_with_its_weight(text: str, key: str, weight: float) -> None:
    assert fairness_of(text) == Fairness(key=key, weight=weight)


@pytest.mark.parametrize("text", ["team=", "team=heavy", "=2", "team=0", "team=inf", "team=-1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"float|greater|less|finite|character"):
        fairness_of(text)


def test_a_limit_is_said_on_one_line() -> None:
    row = LimitRow(
        bucket="tools.work", rates=["60/minute"], used=[12], concurrency=4, running=3, waiting=2, next_in=9.4
    )
    assert in_words(row) == "12 of 60/minute, 3 of 4 running, 2 waiting, the first for 9 s"
    assert in_words(LimitRow(bucket="llm", paused=20)) == "left alone for 20 s, as its server asked"


@pytest.mark.parametrize(
    ("of_plan", "given", "counts"), [(None, 60.0, 60.0), (90.0, 60.0, 60.0), (90.0, 120.0, 90.0), (90.0, None, None)]
)
def test_an_agent_gives_a_plan_less_time_and_never_more(
    of_plan: float | None, given: float | None, counts: float | None
) -> None:
    plan = PLAN.model_copy(update={"timeout": of_plan})
    assert of_another(plan, "agent x", given)["timeout"] == counts

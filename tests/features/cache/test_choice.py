"""What whoever starts a plan says of earlier results: for its child plans, for the run that continues it."""

from __future__ import annotations

from typing import Literal

import pytest

from plansurvive.features.cache.model import CacheChoice
from plansurvive.features.cache.rules import RULES
from plansurvive.features.cache.starting import choice
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.runtime.errors import NotConnected

STEP = Step(id="sub", tool="plan")
ASKED = RuleSet([RULES])


def run_with(cache: Literal["", "on", "fresh"], since: str = "") -> Run:
    """A run with one plan step, which has been called once."""
    options = Options(parts={"cache": CacheChoice(cache=cache, since=since)})
    run = Run.of(Plan(id="p", steps=[STEP]), options, Facts(workspace="/w"), {})
    run.steps["sub"].calls = 1
    return run


@pytest.mark.parametrize(
    ("cache", "since", "name", "expected"),
    [
        ("fresh", "", "p-sub", ""),
        ("on", "", "p-sub", ""),
        ("on", "before", "p-sub", "before-sub"),
        ("on", "before", "mine", "mine"),
    ],
)
def test_a_child_takes_results_of_earlier_runs_as_its_parent_does(
    cache: Literal["", "on", "fresh"], since: str, name: str, expected: str
) -> None:
    parts = ASKED.parts_for_child(run_with(cache, since), STEP, Plan(id=name, steps=[STEP]))
    assert parts == {"cache": CacheChoice(cache=cache, since=expected)}


def test_an_agent_is_told_nothing_of_it_nor_a_child_plan_where_nothing_was_said() -> None:
    assert ASKED.parts_for_child(run_with("on"), STEP, None) == {}
    assert ASKED.parts_for_child(run_with(""), STEP, Plan(id="p-sub", steps=[STEP])) == {}


def test_a_resumed_run_keeps_the_choice_and_a_rerun_takes_no_earlier_results() -> None:
    run = run_with("on", "before")
    assert ASKED.parts_for_next(run) == {"cache": CacheChoice(cache="on", since="before")}
    assert ASKED.parts_for_next(run, rerun=True) == {"cache": CacheChoice(cache="fresh")}


async def test_the_options_of_commands_are_a_choice() -> None:
    said = list[str]()
    fresh = choice({"no_cache": True})
    assert fresh is not None
    assert await fresh(None, "t", said.append) == CacheChoice(cache="fresh")
    with pytest.raises(PlanError, match="leave one out"):
        choice({"no_cache": True, "since": "last"})
    named = choice({"since": "last"})
    assert named is not None
    with pytest.raises(NotConnected, match="--since needs the server"):
        await named(None, "t", said.append)
    assert choice({}) is None

"""States that are handed in with a start: those that `plan resume` makes pass, what no run can be is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from plansurvive.features.agents.model.resume import resumed as resumed_agent
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.agents.start import problem_of as agent_problem_of
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.resume import rerun_from, rerun_only, resumed
from plansurvive.plans.run import Change, Decision, PlanStatus, Run, Status, StepState
from plansurvive.workflows.run_check import problem_of
from tests.fuzz.states import NOW, agent, run

Damage = Callable[[Run], Any]


def sound() -> Run:
    """A resumed run in which some steps have ended before."""
    rng = random.Random(3)
    while True:
        found = run(rng, "/w")
        if {state.status for state in found.steps.values()} >= {Status.COMPLETED, Status.READY}:
            return resumed(found, "fuzz-r2", NOW)


def done(found: Run) -> StepState:
    return next(state for state in found.steps.values() if state.status is Status.COMPLETED)


def fresh(found: Run) -> StepState:
    return next(state for state in found.steps.values() if state.status is Status.PENDING)


@pytest.mark.parametrize("seed", range(25))
def test_every_run_that_resume_and_rerun_make_is_sound(seed: int) -> None:
    found = run(random.Random(seed), "/w")
    for make in (resumed, *(lambda *each, a=again: a(each[0], "s1", *each[1:]) for again in (rerun_from, rerun_only))):
        try:
            made = make(found, "fuzz-r2", NOW)
        except Refused:
            continue
        assert problem_of(made, NOW) is None


@pytest.mark.parametrize("seed", range(5))
def test_every_agent_that_resume_makes_is_sound(seed: int) -> None:
    found = agent(random.Random(seed), "/w")
    assert agent_problem_of(resumed_agent(found, "agent-fuzz-r2", NOW), NOW) is None
    assert agent_problem_of(AgentRun.of(found.order, "agent-new", found.run.options), NOW) is None


DAMAGE: dict[str, Damage] = {
    "a status other than draft": lambda found: setattr(found, "status", PlanStatus.RUNNING),
    "a step without a state": lambda found: found.steps.popitem(),
    "a state without a step": lambda found: found.steps.update(other=StepState()),
    "two steps of one id": lambda found: found.plan.steps.append(found.plan.steps[0]),
    "a completed step without changes": lambda found: done(found).changes.clear(),
    "a completed step without a result": lambda found: setattr(done(found), "result", None),
    "a step that runs": lambda found: setattr(fresh(found), "status", Status.RUNNING),
    "a step that waits for nobody": lambda found: setattr(fresh(found), "awaiting", "approval"),
    "a change that is not the last": lambda found: done(found).changes.pop(),
    "a change from the future": lambda found: done(found).changes.append(Change(10**6, NOW, Status.COMPLETED)),
    "a change twice": lambda found: done(found).changes.append(done(found).changes[-1]),
    "a number of changes below its log": lambda found: setattr(found, "seq", 0),
    "a number of changes without end": lambda found: setattr(found, "seq", 10**30),
    "a negative count": lambda found: setattr(fresh(found), "calls", -1),
    "a time without a zone": lambda found: found.decisions.update(
        s1=Decision(approved=True, time=datetime(2026, 1, 1))
    ),
    "a number that is none": lambda found: setattr(found, "llm_seconds", float("nan")),
    "a text that cannot be written": lambda found: setattr(found, "draft", "\ud800"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_no_run_can_be_is_named(what: str) -> None:
    found = sound()
    assert problem_of(found, NOW) is None
    DAMAGE[what](found)
    assert problem_of(found, NOW)


def test_an_agent_needs_an_end_numbered_calls_and_finished_ones() -> None:
    for damage in (
        lambda found: setattr(found, "end", "completed"),
        lambda found: setattr(found, "called", ["a"]),
        lambda found: found.run.plan.steps.reverse() or found.run.plan.steps.pop(),
    ):
        found = resumed_agent(agent(random.Random(1), "/w"), "agent-fuzz-r2", NOW)
        damage(found)
        assert agent_problem_of(found, NOW)

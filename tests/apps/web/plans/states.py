"""Plans by what they show: one of each state that a page may have to show, for those that look at pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from plansurvive.client.feature import read_run
from plansurvive.features.policy.model import Consents
from plansurvive.features.quotas import rules as quotas
from plansurvive.plans.child_state import AtWork
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Problem
from plansurvive.plans.run import ENDED, PlanStatus, Run, text_of
from tests.client.test_every_view import agent_run, begun, consents, snapshots, walks
from tests.plans.building import NOW
from tests.plans.flow.player import Player

REFUSAL = Problem(code="WORKSPACE_REFUSED", message="name another directory with `--workspace`", field="workspace")
PHASES = {"half-way": "", "rolling-back": "rollback", "finishing": "finally"}


def _snapshot(phase: str) -> Run:
    return next(run for run in snapshots() if (run.closing.phase if run.closing else "") == phase)


def _of_status(status: PlanStatus) -> Run:
    run = _snapshot("")
    run.status = status
    return run


def _ended() -> Run:
    """A plan of which a step failed, and whose others were undone."""
    for number in range(20):
        *_, player = walks(number)
        if player.run.closing and player.run.closing.order:
            return player.run
    raise AssertionError("no plan rolls back")


def _completed() -> Run:
    player = Player(begun()).play()
    while player.run.status not in ENDED:
        player.decide(next(iter(player.schedule.awaiting)), True)
        player.play()
    return player.run


def _refused() -> Run:
    run = _of_status(PlanStatus.FAILED)
    run.problems, run.stopped = [REFUSAL], "its worker refused it"
    return run


def _for_its_turn() -> Run:
    run = begun()
    Schedule(run).begin(NOW)
    quotas.ask(run, "customer=acme", 1, "t1", NOW + timedelta(seconds=5))
    run.status = PlanStatus.RUNNING
    return run


def _agent() -> Run:
    """The plan of a coding agent itself, which asks for permissions."""
    return Player(agent_run()).play().run


def _with_agent() -> Run:
    """A plan whose step is at work by way of an agent, which asks."""
    run = _snapshot("")
    name = next(name for name, state in run.steps.items() if state.status == "running")
    run.steps[name].keep(AtWork(tasks=["one", "two"], done=1, asks=["p1", "p2"]))
    return run


def _by_two() -> Run:
    """A plan with a call that two people must approve, one of whom has."""
    run = _snapshot("")
    name = next(name for name, state in run.steps.items() if state.awaiting == "approval")
    asked = [each for each, _ in consents(run, name)]
    run.keep(Consents(steps={name: asked[1]}))
    return run


STATES: dict[str, Callable[[], Run]] = {
    **{name: partial(_snapshot, phase) for name, phase in PHASES.items()},
    **{each.value: partial(_of_status, each) for each in PlanStatus if each is not PlanStatus.COMPLETED},
    "completed": _completed, "undone": _ended, "refused": _refused, "for-its-turn": _for_its_turn, "agent": _agent,
    "with-agent": _with_agent, "by-two": _by_two,
}  # fmt: skip


def in_state(name: str) -> Run:
    """A plan in this state, whose id is the name of the state."""
    run = read_run(text_of(STATES[name]()))
    run.plan = run.plan.model_copy(update={"id": name, "title": f"A plan: {name.replace('-', ' ')}"})
    return run

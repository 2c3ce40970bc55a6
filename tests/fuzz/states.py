"""Start arguments that carry a state, as `plan resume` sends them, and the same made by hand: with faults."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from plans.activity_io import Facts
from plans.agents.order import AgentOrder
from plans.agents.run import AgentRun
from plans.execution.resume import resumed
from plans.execution.schedule import Outcome, Schedule
from plans.model import Plan, Step
from plans.run import Options, Result, Run, Status
from tests.fuzz import mutate

CHANGES = {"planId": "fuzz", "stepId": "s1", "undo": True, "dryRun": True, "partly": False, "diffs": True}
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def run(rng: random.Random, workspace: str) -> Run:
    """A run of which some steps have ended."""
    plan = Plan.model_validate(mutate.plan(rng) | {"id": "fuzz"})
    found = Run.of(plan, Options(workspace=workspace, approve_all=True), Facts(), {})
    schedule, now = Schedule(found), NOW
    schedule.begin(now)
    for _ in range(rng.randrange(len(plan.steps))):
        for name in list(schedule.ready)[:1]:
            now += timedelta(seconds=1)
            schedule.start(name, now)
            ended = rng.choice((Status.COMPLETED, Status.COMPLETED, Status.FAILED))
            schedule.settle(name, Outcome(ended, Result(ok=ended is Status.COMPLETED, timestamp=now)), now)
    if rng.random() < 0.3 and schedule.ready:
        schedule.start(next(iter(schedule.ready)), now)
    return found


def agent(rng: random.Random, workspace: str) -> AgentRun:
    """An agent's run with some calls."""
    order = AgentOrder(request="count to three")
    found = AgentRun.of(order, "agent-fuzz", Options(workspace=workspace, approve_all=True))
    for number in range(1, rng.randint(2, 4)):
        step = Step(id=f"call_{number}", tool="work", args={"name": f"call_{number}"})
        schedule = Schedule(found.run)
        if number == 1:
            schedule.begin(NOW)
        schedule.revise(found.run.plan.model_copy(update={"steps": [*found.run.plan.steps, step]}), {}, (), NOW)
        schedule.start(step.id, NOW)
        schedule.settle(step.id, Outcome(Status.COMPLETED, Result(ok=True, value=number, timestamp=NOW)), NOW)
        found.called = [step.id]
    return found


def hand_made(rng: random.Random, workspace: str) -> tuple[str, Any]:
    """A workflow type and a start argument with a carried state: sound, of another moment, or with faults."""
    state: Run | AgentRun
    if rng.random() < 0.1:
        long, queues = "x" * 1_900_000, rng.choice((["q" * 2_000], ["/_sys/x"], ["a\nb"], [""]))
        wrong = rng.choice(({long: 1}, {"planId": long}, {"queues": queues}, {"stepId": long}, {}))
        return "ChangesWorkflow", mutate.faulty(rng, CHANGES, rng.randrange(3)) | wrong
    if rng.random() < 0.6:
        kind, key, state = "PlanWorkflow", "run", run(rng, workspace)
        if rng.random() < 0.6 and any(each.status is not Status.COMPLETED for each in state.steps.values()):
            state = resumed(state, "fuzz-r2", NOW)
    else:
        kind, key, state = "AgentWorkflow", "agent", agent(rng, workspace)
        if rng.random() < 0.5:
            state = type(state).model_validate(state.model_dump() | {"end": "completed"})
    data = mutate.faulty(rng, state.model_dump(mode="json", exclude_defaults=True), rng.choice((0, 1, 1, 2, 3)))
    if key == "run" and rng.random() < 0.2:
        data = json.dumps(data)
    return kind, {key: data}

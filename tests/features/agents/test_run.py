"""An agent's tool calls as steps, what the model is told of them, and a run that goes on from an interrupted one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plansurvive.features.agents.model.answers import ToolUse
from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.resume import resumed, take_outcomes
from plansurvive.features.agents.model.run import AgentRun, conclude, lightened, outcome_of, steps_of
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.features.agents.workflow import read_on
from plansurvive.plans.activity_io import Attempt, Facts
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_attempts
from plansurvive.plans.llm.prompt_parts import outcome_text
from plansurvive.plans.run import Options, Result, Status
from plansurvive.plans.step_state import Outcome as Ended
from tests.plans.building import NOW, TOOLS, completed

LATER = NOW + timedelta(minutes=5)


def _agent(*calls: ToolUse, **order: object) -> tuple[AgentRun, Schedule]:
    agent = AgentRun.of(AgentOrder.model_validate({"request": "Do it.", **order}), "agent-a", Options())
    agent.run.facts = Facts(tools=TOOLS, workspace="/w")
    schedule = Schedule(agent.run)
    schedule.begin(NOW)
    steps = steps_of(agent, calls)
    agent.called = [step.id for step in steps]
    schedule.revise(agent.run.plan.model_copy(update={"steps": steps}), {}, (), NOW)
    return agent, schedule


def _use(tool: str, **args: object) -> ToolUse:
    return ToolUse(tool=tool, args=args)


@pytest.mark.parametrize(
    ("calls", "needs"),
    [
        ([_use("read_file", path="a"), _use("read_file", path="a")], [[], []]),
        ([_use("write_file", path="a", content=""), _use("write_file", path="./a", content="")], [[], ["call_1"]]),
        ([_use("write_file", path="a", content=""), _use("write_file", path="b", content="")], [[], []]),
        ([_use("write_file", path="a", content=""), _use("run_command", command="ls")], [[], ["call_1"]]),
        ([_use("write_file", path="/w/a", content=""), _use("write_file", path="a", content="")], [[], ["call_1"]]),
    ],
)
def test_calls_wait_for_those_that_touch_the_same_path(calls: list[ToolUse], needs: list[list[str]]) -> None:
    specs = {name: spec.model_copy(update={"effect": "pure"}) if name == "read_file" else spec
             for name, spec in TOOLS.items()}  # fmt: skip
    agent, _ = _agent()
    agent.run.facts = Facts(tools=specs, workspace="/w")
    assert [step.depends_on for step in steps_of(agent, calls)] == needs


def test_what_looks_like_a_reference_makes_no_dependency() -> None:
    _, schedule = _agent(_use("note", text="a"), _use("note", text="$call_1 {{call_1}}"))
    assert schedule.needs("call_2") == {"call_1": False}  # a command-like tool waits, but uses no value


def test_the_model_is_told_values_errors_and_what_was_not_made() -> None:
    agent, schedule = _agent(_use("note", text="a"), _use("note", text="b"))
    schedule.start("call_1", NOW)
    failure = Result(ok=False, error="it broke", code="TOOL_FAILED", timestamp=NOW)
    schedule.settle("call_1", Ended(Status.FAILED, failure), NOW)
    told = [outcome_of(agent, name) for name in agent.called]
    assert [(each.ok, each.text) for each in told] == [(False, "it broke"), (False, "not made: 'call_1' failed")]


def test_a_model_reads_on_where_a_result_was_cut() -> None:
    agent, schedule = _agent(_use("note", text="a"))
    schedule.start("call_1", NOW)
    schedule.settle("call_1", completed("x" * 5_000 + "the end"), NOW)
    rest = read_on(agent, _use("read_result", call=1, offset=5_000))
    assert rest.shown().text == "the end"
    assert read_on(agent, _use("read_result", call=7)).ok is False


def test_a_resumed_run_keeps_its_task_list_and_makes_the_calls_that_had_not_begun() -> None:
    agent, schedule = _agent(_use("note", text="a"), _use("note", text="b"))
    agent.tasks = TaskList.of(["one", "two"]).begin().complete("one is done")
    schedule.start("call_1", NOW)
    schedule.settle("call_1", completed("done"), NOW)
    schedule.stop("interrupted by ann", NOW)
    assert not take_outcomes(agent)
    conclude(agent, "interrupted", agent.run.stopped, NOW)
    made = resumed(agent, "agent-a-r2", LATER, "ann")
    assert (made.run.plan.id, made.run.resumes, made.end, made.run.stopped) == ("agent-a-r2", "agent-a", None, "")
    assert made.position == "1/2 tasks done, now: two"
    assert (made.unsent, agent.end) == ([], "interrupted")
    schedule = Schedule(made.run)
    assert schedule.begin(LATER) == ["call_2"]
    schedule.start("call_2", LATER)
    schedule.settle("call_2", completed("made"), LATER)
    assert take_outcomes(made)
    assert [(each.call, each.text) for each in made.unsent] == [(1, "done"), (2, "made")]


def test_long_arguments_of_calls_that_ended_are_cut_when_it_goes_on() -> None:
    agent, schedule = _agent(_use("note", text="a" * 9_000), _use("note", text="b" * 9_000))
    schedule.start("call_1", NOW)
    schedule.settle("call_1", completed(), NOW)
    sizes = [len(step.args["text"]) for step in lightened(agent).run.plan.steps]
    assert sizes == [514, 9_000]


def test_the_model_is_told_that_its_call_was_made_more_than_once() -> None:
    agent, schedule = _agent(_use("run_command", command="deploy"))
    schedule.start("call_1", NOW)
    state = agent.run.steps["call_1"]
    state.calls = 1
    lost = Attempt(number=1, began=NOW, duration=5.0, code="WORKER_LOST", error="its worker died or was stopped")
    failed = lost.model_copy(update={"number": 2, "code": "COMMAND_FAILED", "error": "exit code 3"})
    note_attempts(agent.run, agent.run.plan.steps[0], [lost], 0)
    schedule.settle("call_1", completed("done"), NOW)
    told = outcome_text(outcome_of(agent, "call_1").shown())
    assert "(made 2 times: before this, 1 lost with the worker, after all or part of what the call does) [SUCC" in told
    note_attempts(agent.run, agent.run.plan.steps[0], [failed], 0)
    again = outcome_of(agent, "call_1").again
    assert (again[:13], again[-10:]) == ("made 3 times:", ", 1 failed")

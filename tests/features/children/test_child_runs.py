"""Child plans as values: ids, rights, what they report, what their parent counts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.reports.accounts import opened as agent_opened
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.children.accounts import opened
from plansurvive.features.children.child_run import child_run, place_problems, resumed_run, waivers_count
from plansurvive.features.children.files import placed
from plansurvive.features.children.model import KnownPlans
from plansurvive.features.children.orders import source_of
from plansurvive.features.children.results import failure_of
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.child_state import MAX_NESTING, ChildPlan, ParentLink
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import BadExpression, BadReference, InvalidPlan, Refused
from plansurvive.plans.execution import accounts
from plansurvive.plans.execution.messages import AgentProgress
from plansurvive.plans.execution.outputs import BAD_OUTPUT, evaluated, wanted
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, PlanStatus, Result, Run, Status
from plansurvive.plans.run.feature import NO_RULES
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.usage import Spent, Usage

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DATA = {
    "inputs": {"n": {"type": "integer"}},
    "steps": [{"id": "a", "tool": "work"}],
    "outputs": {"x": "a.v", "n": "inputs.n"},
}


def parent_of(*, args: dict[str, Any] | None = None, **options: Any) -> tuple[Run, Step]:
    """A run with one plan step, and that step."""
    steps = [{"id": "sub", "tool": "plan", "args": args or {"steps": [{"id": "a", "tool": "work"}]}}]
    plan = read_plan({"id": "p", "steps": steps})
    assert isinstance(plan, Plan)
    run = Run.of(plan, Options(**options), Facts(workspace="/w"), {})
    run.steps["sub"].child = ChildPlan(kind="inline")
    return run, plan.steps[0]


@pytest.mark.parametrize(
    ("step_id", "calls", "chosen", "plan", "expected"),
    [
        ("deploy", 1, None, "p", "p-deploy"),
        ("deploy", 2, None, "p", "p-deploy-2"),
        ("deploy", 1, "mine", "p", "mine"),
        ("deploy", 1, "mine", "p-r3", "mine-r3"),
    ],
)
def test_the_id_of_a_child_follows_from_its_plan_and_step(
    step_id: str, calls: int, chosen: str | None, plan: str, expected: str
) -> None:
    assert child_id(plan, step_id, calls, chosen) == expected


def test_ids_of_instances_give_safe_ids_that_differ() -> None:
    ids = [child_id("p", name, 1) for name in ("load[a/b]", "load[a b]", "load-a-b", "x" * 128)]
    assert len(set(ids)) == 4
    assert all(name.replace("-", "").isalnum() and len(name) < 200 for name in ids)


def test_a_source_is_named_once() -> None:
    assert source_of({"template": "t@abc123"}).kind == "template"
    with pytest.raises(BadReference, match="file and template"):
        source_of({"file": "a", "template": "b"})


def test_a_child_is_refused_when_it_is_nested_too_deep_or_its_inputs_do_not_fit() -> None:
    run, step = parent_of()
    assert child_run(run, step, DATA, {"n": 1}, "p-sub").parent == ParentLink(plan_id="p", step_id="sub", depth=1)
    with pytest.raises(InvalidPlan, match="UNKNOWN_INPUT"):
        child_run(run, step, DATA, {"n": 1, "m": 2}, "p-sub")
    with pytest.raises(InvalidPlan, match="should be a whole number"):
        child_run(run, step, DATA, {"n": "one"}, "p-sub")
    run.parent = ParentLink(plan_id="q", step_id="s", depth=MAX_NESTING)
    with pytest.raises(Refused, match="does a plan run itself"):
        child_run(run, step, DATA, {"n": 1}, "p-sub")


def test_a_child_does_not_leave_the_workspace_of_its_parent() -> None:
    run, step = parent_of()
    below = child_run(run, step, DATA | {"workspace": "sub/dir"}, {"n": 1}, "c")
    assert below.options.workspace == "/w/sub/dir"
    assert not place_problems(below, Facts(workspace="/w/sub/dir"))
    for place in ("..", "/home/other", "sub/../../x"):
        outside = child_run(run, step, DATA | {"workspace": place}, {"n": 1}, "c")
        [problem] = place_problems(outside, Facts(workspace=outside.options.workspace or ""))
        assert problem.code == "WORKSPACE_REFUSED"
    [problem] = place_problems(below, Facts(workspace="/elsewhere"))  # a link, as the worker resolved it
    assert problem.code == "WORKSPACE_REFUSED"


@pytest.mark.parametrize(
    ("change", "counts"),
    [("", True), ("edited", False), ("value", False), ("drafted", False), ("above", False), ("approver", False)],
)
def test_waivers_of_inline_steps_count_only_as_the_plan_was_started(change: str, counts: bool) -> None:
    run, step = parent_of(args={"steps": "$made"} if change == "value" else None, waivers=change != "above")
    if change == "edited":
        run.edited["sub"] = "call"
    if change == "approver":
        run.steps["sub"].args = {"steps": []}
    run.request = "Do it." if change == "drafted" else ""
    assert waivers_count(run, step) is counts


def test_waivers_of_a_file_count_if_the_person_who_started_had_the_same_content() -> None:
    run, step = parent_of(args={"file": "a.yaml"}, parts={"children": KnownPlans(sha256=["1" * 64])})
    for digest, counts in (("1" * 64, True), ("2" * 64, False)):
        run.steps["sub"].child = ChildPlan(kind="file", named="a.yaml", sha256=digest)
        assert waivers_count(run, step) is counts
        assert child_run(run, step, DATA, {"n": 1}, "c").options.waivers is counts


def ended(outcome: Outcome, **plan: Any) -> Run:
    """A run of one step that has ended in this way."""
    data = read_plan({**DATA, "id": "c", **plan})
    assert isinstance(data, Plan)
    run = Run.of(data, Options(inputs={"n": 1}), Facts(), {"n": 1})
    schedule = Schedule(run)
    schedule.begin(NOW)
    schedule.start("a", NOW)
    schedule.settle("a", outcome, NOW)
    schedule.end(NOW)
    return run


def good(value: Any) -> Outcome:
    return Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=NOW))


def test_the_value_of_a_plan_is_its_outputs_or_the_values_by_step() -> None:
    run = ended(good({"v": 5}))
    request = wanted(run, is_child=True)
    assert request is not None
    assert evaluated(request, request.values, Budget()) == {"x": 5, "n": 1}
    run.plan = run.plan.model_copy(update={"outputs": {}})
    assert wanted(run, is_child=False) is None
    request = wanted(run, is_child=True)
    assert request is not None
    assert evaluated(request, request.values, Budget()) == {"a": {"v": 5}}


def test_an_output_that_cannot_be_evaluated_is_named() -> None:
    request = wanted(ended(good("text"), outputs={"sum": "sum(a)"}), is_child=True)
    assert request is not None
    with pytest.raises(BadExpression, match="output 'sum'") as caught:
        evaluated(request, request.values, Budget())
    assert caught.value.code == BAD_OUTPUT


def test_a_child_that_failed_names_its_first_failed_step() -> None:
    bad = Outcome(Status.FAILED, Result(ok=False, error="no such file", code="NOT_FOUND", timestamp=NOW))
    assert failure_of(ended(bad)) == (
        "PLAN_PARTIAL", "plan 'c' ended as partial: step 'a' failed (NOT_FOUND): no such file"
    )  # fmt: skip
    assert failure_of(ended(good(1))) == ("", "")


def test_files_of_a_child_are_named_as_in_the_workspace_of_its_parent() -> None:
    found = {"wrote": {"a.txt": {"hash": "1", "size": 1}}, "deleted": ["b.txt"], "shared": []}
    assert placed(found, "/w", "/w") == found
    assert placed(found, "/w/in", "/w")["wrote"] == {"in/a.txt": {"hash": "1", "size": 1}}
    assert placed(found, "/other", "/w")["wrote"] == {"/other/a.txt": None}
    assert placed(found, "/w/in", "/w")["deleted"] == ["in/b.txt"]


def running() -> Run:
    """A run whose plan step runs."""
    run, step = parent_of()
    schedule = Schedule(run)
    schedule.begin(NOW)
    schedule.start("sub", NOW)
    child = child_run(run, step, {"steps": [{"id": "a", "tool": "work"}]}, {}, "p-sub")
    opened(run, step, child, asks=False)
    return run


def report(**fields: Any) -> AgentProgress:
    return AgentProgress(step_id="sub", agent_id="plan-p-sub", **fields)


def test_a_child_plan_may_have_several_requests_under_way_and_each_counts() -> None:
    run = running()
    for number in (1, 2):
        accounts.received(run, report(request=number), NOW)
        accounts.answered(run, "sub", granted=True)
    assert run.ledger.position(0, 0.0).spent.calls + run.ledger.position(0, 0.0).uncounted == 2
    spent = Spent(by_model={"m": Usage(calls=1, total_tokens=10)})
    accounts.received(run, report(finished=1, spent=spent), NOW)
    position = run.ledger.position(0, 0.0)
    assert (position.spent.calls, position.uncounted, position.spent.total_tokens) == (1, 1, 10)
    accounts.closed(run, "sub", lost=True)
    assert run.ledger.total.calls == 2, "a request whose end is unknown counts as sent"


def test_a_child_plan_that_asks_again_for_what_it_was_granted_is_no_intruder_and_gets_no_second_grant() -> None:
    run = running()
    accounts.received(run, report(request=1), NOW)
    accounts.answered(run, "sub", granted=True)
    spent = Spent(by_model={"m": Usage(calls=1, total_tokens=10)})
    accounts.received(run, report(request=1, spent=spent), NOW)  # it continued as new before the answer came
    assert accounts.waiting(run) == []
    assert (run.ledger.total.calls, run.ledger.accounts["sub"].granted) == (1, 1)


def test_the_agents_of_a_child_plan_ask_from_their_first_request_on_if_there_is_a_budget_above() -> None:
    run, step = parent_of()
    child = child_run(run, step, {"steps": [{"id": "ag", "tool": "agent", "args": {"objective": "x"}}]}, {}, "p-sub")
    agent = AgentRun.of(AgentOrder(request="x"), "agent-p-sub-ag", Options())
    opened(run, step, child, asks=True)
    assert not accounts.must_ask(run, limited=False)
    agent_opened(child, child.plan.steps[0], agent, asks=accounts.must_ask(child, limited=False))
    assert agent.link.asks
    assert child.ledger.accounts["ag"].asks


@pytest.mark.parametrize(
    "message",
    [report(request=2), report(request=3), report(finished=10**6), AgentProgress(step_id="sub", agent_id="plan-x")],
)
def test_a_report_with_numbers_that_no_child_has_is_refused_and_changes_nothing(message: AgentProgress) -> None:
    run = running()
    before = run.model_dump_json()
    with pytest.raises(Refused):
        accounts.received(run, message, NOW)
    assert run.model_dump_json() == before


def test_a_child_is_resumed_with_what_is_done_and_starts_over_for_other_inputs() -> None:
    run, step = parent_of()
    child = ended(Outcome(Status.FAILED, Result(ok=False, error="e", code="X", timestamp=NOW)))
    child.parent = ParentLink(plan_id="p", step_id="sub")
    state = child.model_dump(mode="json", exclude_defaults=True)
    again = resumed_run(run, step, state, {"n": 1}, "p-r2-sub", NOW, NO_RULES)
    assert again is not None
    assert (again.resumes, again.status, again.steps["a"].status) == ("c", PlanStatus.DRAFT, Status.PENDING)
    assert resumed_run(run, step, state, {"n": 2}, "p-r2-sub", NOW, NO_RULES) is None
    assert resumed_run(run, step, {"bad": 1}, {"n": 1}, "p-r2-sub", NOW, NO_RULES) is None
    done = ended(good(1))
    done.parent = ParentLink(plan_id="p", step_id="sub")
    whole = resumed_run(
        run, step, done.model_dump(mode="json", exclude_defaults=True), {"n": 1}, "p-r2-sub", NOW, NO_RULES
    )
    assert whole is not None
    assert whole.steps["a"].status is Status.COMPLETED

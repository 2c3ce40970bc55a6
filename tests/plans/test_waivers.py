"""Every way to do without a person: what waives, what does not, and what `PLANS_APPROVALS=strict` makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.resume import resumed as resumed_agent
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.planning.messages import Regenerate
from plansurvive.features.planning.recovery import applied
from plansurvive.features.planning.regeneration import fitted, replaced
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import Ask, Call, Skip, after_timeout, next_action
from plansurvive.plans.execution.resume import rerun_from, rerun_only, resumed
from plansurvive.plans.execution.revision import put_into_effect, warnings_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.llm.answers import Recovery, parse_plan_answer, parse_recovery
from plansurvive.plans.model import Step
from plansurvive.plans.run import Options, PlanStatus, Result, Run, Status
from plansurvive.plans.run.step_call import StepCall, digest_of
from plansurvive.plans.step_state import Outcome
from tests.plans.building import NOW, TOOLS, begun, completed, failed, plan_of, statuses, step
from tests.plans.flow.player import Player, plan

DELETE = step("g", tool="delete_file", args={"path": "x"})
OTHER = step("h", tool="delete_file", args={"path": "y"})
APPROVES = {"timeout": 5, "onTimeout": "approve"}


def ask(schedule: Schedule, name: str = "g") -> None:
    found = next_action(schedule, name)
    assert isinstance(found, Ask), found
    schedule.ask(name, NOW, approvals.deadline_of(schedule.run, schedule.step(name), NOW))
    approvals.ask(schedule.run, name, found.call.args, digest_of(found.call))


def expire(schedule: Schedule) -> None:
    ask(schedule)
    decision = after_timeout(schedule, "g")
    assert isinstance(decision, Decide)
    approvals.decide(schedule.run, decision, NOW, "timeout")
    schedule.answered("g")


def edit(schedule: Schedule, *edits: dict[str, Any]) -> None:
    message = Edits.model_validate({"edits": list(edits)})
    put_into_effect(schedule, revise(schedule.run, message, NOW), NOW)


def put(path: str, value: Any, name: str | None = "g") -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value} | ({"stepId": name} if name else {})


def started(strict: bool, *steps: Step, options: Options | None = None, **fields: Any) -> Schedule:
    facts = Facts(tools=TOOLS, all_tools=True, workspace="/w", strict_approvals=strict)
    return begun(*steps, step("z"), facts=facts, options=options, **fields)


def own_waiver(strict: bool) -> Schedule:
    return started(strict, DELETE.model_copy(update={"requires_approval": False}))


def yes(strict: bool) -> Schedule:
    return started(strict, DELETE, options=Options(approve_all=True))


def own_time_limit(strict: bool) -> Schedule:
    schedule = started(strict, Step.model_validate({**DELETE.model_dump(), "approval": APPROVES}))
    expire(schedule)
    return schedule


def default_time_limit(strict: bool) -> Schedule:
    schedule = started(strict, DELETE, defaults={"approval": APPROVES})
    expire(schedule)
    return schedule


def remembered(strict: bool) -> Schedule:
    schedule = started(strict, OTHER, DELETE)
    ask(schedule, "h")
    approvals.decide(schedule.run, Decide(step_id="h", approved=True, remember=True), NOW, "update")
    return schedule


def remembered_while_asked(strict: bool) -> Schedule:
    schedule = started(strict, OTHER, DELETE)
    ask(schedule, "g")
    ask(schedule, "h")
    approvals.decide(schedule.run, Decide(step_id="h", approved=True, remember=True), NOW, "update")
    schedule.answered("g")
    return schedule


HONOURED = (own_waiver, yes, own_time_limit, default_time_limit, remembered, remembered_while_asked)


@pytest.mark.parametrize("make", HONOURED)
def test_a_waiver_of_a_person_counts_unless_the_worker_is_strict(make: Callable[[bool], Schedule]) -> None:
    assert isinstance(next_action(make(False), "g"), Call), "the control: it waives"
    assert isinstance(next_action(make(True), "g"), Ask | Skip)


@pytest.mark.parametrize("make", [own_time_limit, default_time_limit])
def test_a_time_limit_that_would_approve_denies_where_approvals_are_strict(make: Callable[[bool], Schedule]) -> None:
    schedule = make(True)
    why = "no decision within 5 s; `onTimeout: approve` does not count: the worker's approvals are strict"
    assert next_action(schedule, "g") == Skip(why, opens=False, code="NOBODY_ANSWERED")
    assert schedule.run.log[-1].text == f"step 'g' denied: {why}"


def edited_waiver(strict: bool) -> Schedule:
    schedule = started(strict, DELETE)
    edit(schedule, put("requiresApproval", False))
    assert any("waives nothing" in entry.text for entry in schedule.run.log)
    return schedule


def test_a_person_who_waives_an_approval_by_an_edit_learns_at_once_that_it_does_not_count() -> None:
    schedule, said = started(False, DELETE), list[list[str]]()
    for change in (put("requiresApproval", False), put("title", "T", name=None)):
        revised = revise(schedule.run, Edits.model_validate({"edits": [change]}), NOW)
        put_into_effect(schedule, revised, NOW)
        said.append(warnings_of(schedule.run, revised))
    assert said == [["`requiresApproval: false` does not count in an edit: 'g' asks if its tool needs approval"], []]


def moved_waiver(strict: bool) -> Schedule:
    schedule = own_waiver(strict)
    edit(schedule, put("args.path", "other"))
    return schedule


def moved_to_another_queue(strict: bool) -> Schedule:
    schedule = own_waiver(strict)
    schedule.run.facts = schedule.run.facts.model_copy(update={"workspaces": {"lab": "/lab"}})
    edit(schedule, put("queue", "lab"))
    return schedule


def added_with_a_waiver(strict: bool) -> Schedule:
    schedule = started(strict)
    row = {"id": "g", "tool": "delete_file", "args": {"path": "x"}, "requiresApproval": False}
    edit(schedule, {"op": "add", "step": row})
    return schedule


def put_back_with_a_waiver(strict: bool) -> Schedule:
    schedule = own_waiver(strict)
    edit(schedule, {"op": "remove", "stepId": "g"})
    edit(schedule, {"op": "add", "step": {"id": "g", "tool": "delete_file", "args": {}, "requiresApproval": False}
                    | {"args": {"path": "q"}}})  # fmt: skip
    return schedule


def edited_time_limit(strict: bool) -> Schedule:
    schedule = started(strict, DELETE)
    edit(schedule, put("approval", APPROVES))
    expire(schedule)
    return schedule


def edited_defaults(strict: bool) -> Schedule:
    schedule = started(strict, DELETE)
    edit(schedule, put("defaults", {"approval": APPROVES}, None))
    expire(schedule)
    return schedule


def edited_while_asked(strict: bool) -> Schedule:
    schedule = started(strict, Step.model_validate({**DELETE.model_dump(), "approval": {"timeout": 5}}))
    ask(schedule)
    edit(schedule, put("approval.onTimeout", "approve"))
    decision = after_timeout(schedule, "g")
    assert isinstance(decision, Decide)
    approvals.decide(schedule.run, decision, NOW, "timeout")
    schedule.answered("g")
    return schedule


def recovered(strict: bool) -> Schedule:
    """The LLM gives a waived step other arguments."""
    schedule = own_waiver(strict)
    schedule.run.steps["g"].failure = failed().result
    choice = Recovery(action="retry", args={"path": "other"})
    revised = applied(schedule.run, schedule.step("g"), choice, NOW)
    assert revised is not None
    schedule.run.steps["g"].failure = None
    put_into_effect(schedule, revised, NOW)
    return schedule


def regenerated(strict: bool) -> Schedule:
    """The LLM gives a waived step other arguments, in a revised plan."""
    schedule = own_waiver(strict)
    steps, wrong = fitted(schedule.run, [Step(id="g", tool="delete_file", args={"path": "other"})])
    assert not wrong
    revised = replaced(schedule.run, plan_of(*steps, step("z")), Regenerate(feedback="x"), NOW)
    put_into_effect(schedule, revised, NOW)
    return schedule


def checked_again(strict: bool, run: Run) -> Schedule:
    """The next run of a plan, once its workers have checked it."""
    run.facts = run.facts.model_copy(update={"strict_approvals": strict})
    schedule = Schedule(run)
    schedule.begin(NOW)
    return schedule


def cut_off(schedule: Schedule) -> Run:
    schedule.stop("interrupted", NOW)
    schedule.end(NOW)
    return schedule.run


def remembered_before(strict: bool) -> Schedule:
    return checked_again(strict, resumed(cut_off(remembered_while_asked(False)), "p-r2", NOW))


def rerun_with_other_args(strict: bool) -> Schedule:
    change = Replacement(step_id="g", path="args.path", value="other")
    return checked_again(strict, rerun_from(cut_off(remembered(False)), "g", "p-r2", NOW, changes=[change]))


def timed_out_before(strict: bool) -> Schedule:
    return checked_again(strict, resumed(cut_off(own_time_limit(False)), "p-r2", NOW))


def denied_before(strict: bool) -> Schedule:
    schedule = yes(False)
    approvals.decide(schedule.run, Decide(step_id="g", approved=False), NOW, "update")
    return checked_again(strict, resumed(cut_off(schedule), "p-r2", NOW))


NOT_HONOURED = (
    edited_waiver, moved_waiver, moved_to_another_queue, added_with_a_waiver, put_back_with_a_waiver, edited_time_limit,
    edited_defaults, edited_while_asked, recovered, regenerated, remembered_before, rerun_with_other_args,
    timed_out_before, denied_before,
)  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("make", NOT_HONOURED)
def test_nothing_else_does_without_a_person(make: Callable[[bool], Schedule], strict: bool) -> None:
    assert isinstance(next_action(make(strict), "g"), Ask | Skip)


EDITED = (edited_waiver, moved_waiver, moved_to_another_queue, added_with_a_waiver, put_back_with_a_waiver)


@pytest.mark.parametrize("make", EDITED)
def test_the_control_waivers_count_where_no_edit_is_noted(make: Callable[[bool], Schedule]) -> None:
    schedule = make(False)
    schedule.run.edited.clear()
    assert isinstance(next_action(schedule, "g"), Call)


def test_a_plan_continued_by_a_strict_worker_asks_for_what_was_waived() -> None:
    for make in (own_waiver, yes):
        assert isinstance(next_action(checked_again(True, resumed(cut_off(make(False)), "p-r2", NOW)), "g"), Ask)
        assert isinstance(next_action(checked_again(False, resumed(cut_off(make(False)), "p-r2", NOW)), "g"), Call)


def test_an_agent_that_is_continued_remembers_no_approval() -> None:
    agent = AgentRun.of(AgentOrder(request="x"), "a", Options())
    agent.run.remembered["run_command in /w"] = "ann"
    agent.run.status = PlanStatus.CANCELLED
    assert resumed_agent(agent, "a-r2", NOW).run.remembered == {}


WAIVING = {"requiresApproval": False, "approval": APPROVES, "queue": "lab"}


def test_an_answer_of_the_llm_waives_nothing_and_chooses_no_queue() -> None:
    row = {"id": "g", "tool": "delete_file", "args": {"path": "x"}, **WAIVING}

    plan = parse_plan_answer(json.dumps({"steps": [row], "defaults": {"approval": APPROVES}, "queue": "lab"}), TOOLS)
    recovery = parse_recovery(json.dumps({"action": "insert", "steps": [row], "reason": "x"}), None, TOOLS)
    for steps, notes in ((plan.plan.steps, plan.notes), (recovery.steps, recovery.notes)):  # type: ignore[union-attr]
        assert (steps[0].requires_approval, steps[0].approval, steps[0].queue) == (None, None, None)
        assert [name for name in WAIVING if any(name in note for note in notes)] == list(WAIVING)
    assert plan.plan.queue is None  # type: ignore[union-attr]
    assert plan.plan.defaults.approval is None  # type: ignore[union-attr]


def test_a_denied_step_makes_the_plan_partial_and_is_asked_again() -> None:
    schedule = started(False, DELETE, OTHER.model_copy(update={"depends_on": ["g"]}))
    ask(schedule)
    approvals.decide(schedule.run, Decide(step_id="g", approved=False, by="ann"), NOW, "update")
    schedule.answered("g")
    found = next_action(schedule, "g")
    assert isinstance(found, Skip)

    result = Result(ok=False, error=found.reason, code=found.code, timestamp=NOW)
    schedule.settle("g", Outcome(Status.SKIPPED, result, found.opens), NOW)
    schedule.start("z", NOW)
    schedule.settle("z", completed(), NOW)
    assert schedule.end(NOW) is PlanStatus.PARTIAL
    for again in (resumed(schedule.run, "p-r2", NOW), rerun_from(schedule.run, "z", "p-r2", NOW)):
        assert statuses(again)["g"] == statuses(again)["h"] == "pending"
        assert isinstance(next_action(checked_again(False, again), "g"), Ask)
    alone = checked_again(False, rerun_only(schedule.run, "g", "p-r2", NOW))
    assert isinstance(next_action(alone, "g"), Ask)


def test_an_approval_that_was_not_used_stands_for_the_same_call_only() -> None:
    for change, then in (([], Call), ([Replacement(step_id="g", path="args.path", value="other")], Ask)):
        schedule = started(False, DELETE)
        approvals.decide(schedule.run, Decide(step_id="g", approved=True, by="ann"), NOW, "update")
        again = rerun_from(cut_off(schedule), "g", "p-r2", NOW, changes=change)
        assert isinstance(next_action(checked_again(False, again), "g"), then)


def test_arguments_of_an_approver_are_a_version_of_the_plan_that_is_kept() -> None:
    schedule = started(False, DELETE)
    ask(schedule)
    old = schedule.run.steps["g"].digest
    message = Decide(step_id="g", approved=True, by="ann", comment="safer", args={"path": "safe"}, digest=old)
    decision = approvals.decide(schedule.run, message, NOW, "update")
    revision = schedule.run.revisions[-1]
    assert (schedule.run.plan.version, revision.version, revision.by, revision.reason) == (2, 2, "ann", "safer")
    assert revision.diff == ['~ g.args.path: "x" -> "safe"', f"g: call {old} -> {decision.digest}"]
    assert decision.digest not in ("", old)
    schedule.answered("g")
    found = next_action(schedule, "g")
    assert isinstance(found, Call)
    assert found.filled.args == {"path": "safe"}
    again = resumed(cut_off(schedule), "p-r2", NOW)
    assert again.args_of(again.plan.steps[0]) == {"path": "safe"}
    assert rerun_from(schedule.run, "g", "p-r2", NOW).plan.steps[0].args == {"path": "safe"}


def test_arguments_of_an_approver_that_use_values_are_shown_filled_in_first() -> None:
    schedule = started(False, DELETE.model_copy(update={"depends_on": ["z"]}))
    schedule.start("z", NOW)
    schedule.settle("z", completed("unseen"), NOW)
    ask(schedule)
    digest = schedule.run.steps["g"].digest
    message = Decide(step_id="g", approved=True, args={"path": "$z"}, digest=digest)
    approvals.decide(schedule.run, message, NOW, "update")
    schedule.answered("g")
    found = next_action(schedule, "g")
    assert isinstance(found, Ask)
    assert found.call.args == {"path": "unseen"}


def block_of(*inner: Step, **fields: Any) -> dict[str, Any]:
    """The data of a block."""
    steps = [each.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for each in inner]
    return {"id": "b", "steps": steps, **fields}


WAIVED = step("w", tool="delete_file", args={"path": "x"}, requires_approval=False, approval=APPROVES)


@pytest.mark.parametrize("name", ["b.w", "b[cat.png].w", "b[a.b#1]#2.w", "b#3.w", "b.catch.w", "b[x].inner[y].w"])
def test_a_waiver_inside_a_block_that_an_edit_made_counts_for_nothing(name: str) -> None:
    inner = WAIVED.model_copy(update={"id": name})
    call = StepCall(inner.tool, inner.args, None, "", {})
    added = begun(step("a"))
    assert approvals.is_waived(added.run, inner, call)
    edit(added, {"op": "add", "step": block_of(WAIVED)})
    assert not approvals.is_waived(added.run, inner, call)
    assert approvals.refused_waiver(added.run, inner)
    assert approvals.is_waived(added.run, inner.model_copy(update={"id": f"bb{name[1:]}"}), call)


@pytest.mark.parametrize(
    "change",
    [
        put("steps", block_of(WAIVED)["steps"], "b"),
        put("forEach", ["x", "y"], "b"),
        put("repeat", {"until": "v"}, "b"),
        put("catch", [{"steps": block_of(WAIVED)["steps"]}], "b"),
    ],
)
def test_an_edit_of_what_is_in_a_block_or_how_often_it_runs_ends_its_waivers(change: dict[str, Any]) -> None:
    schedule = begun(step("a"), Step.model_validate(block_of(step("v"), dependsOn=["a"])))
    edit(schedule, change)
    inner = WAIVED.model_copy(update={"id": "b.w"})
    assert not approvals.is_waived(schedule.run, inner, StepCall(inner.tool, inner.args, None, "", {}))


@pytest.mark.parametrize("is_inner", [False, True])
def test_a_waiver_is_not_moved_to_another_call_by_a_rerun(is_inner: bool) -> None:
    delete = {"id": "b", "tool": "delete_file", "args": {"path": "x"}, "requiresApproval": False}
    steps = [{"id": "each", "forEach": ["x"], "steps": [delete]}] if is_inner else [delete]
    top, name, template = ("each", "each[0].b", "each.b") if is_inner else ("b", "b", "b")
    played = Player(plan(*steps)).play()
    assert (played.called, played.run.status) == ([name], "completed")

    def again(*changes: tuple[str, str, Any]) -> Player:
        given = [Replacement(step_id=step, path=path, value=value) for step, path, value in changes]
        return Player(rerun_from(played.run, top, "p-r2", NOW, "", given)).play()

    assert again().called == [name], "the control: the same call is waived as before"
    assert again((template, "retry.attempts", 5)).called == [name], "and so it is with more attempts"
    changed = again((template, "args.path", "y"))
    assert (changed.called, list(changed.schedule.awaiting)) == ([], [name])
    assert again((template, "args.path", "y"), (template, "requiresApproval", False)).called == [name]

"""Edits decided in plain values: what they make of a run, and that a refused one leaves it as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.change_log import MAX_KEPT, MAX_LINES, MAX_REVISIONS, Revision, differences, logged
from plansurvive.plans.definition.checks.calls import at_worker
from plansurvive.plans.definition.checks.validation import certain, errors, problems
from plansurvive.plans.editing.apply_edits import Revised, revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.expressions.json_path import PathError, put
from plansurvive.plans.model import Step
from plansurvive.plans.run import PlanStatus, Run, Status
from tests.plans.building import NOW, completed, plan_of, run_of, statuses, step


def message(*edits: dict[str, Any], **more: Any) -> Edits:
    """The message of these edits."""
    return Edits.model_validate({"edits": list(edits), **more})


def reviewed(*steps: Step) -> Schedule:
    """A run in review."""
    schedule = Schedule(run_of(*steps))
    schedule.review()
    return schedule


def carried_out(schedule: Schedule, revised: Revised) -> Run:
    """The run after the edits."""
    schedule.revise(revised.plan, revised.skipped, revised.unskipped, NOW)
    return schedule.run


def test_edits_make_a_new_version_and_leave_the_run_as_it_was() -> None:
    schedule = reviewed(step("a"), step("b", "a"))
    before = schedule.run.model_dump()
    edits: list[dict[str, Any]] = [
        {"op": "set", "stepId": "b", "path": "description", "value": "new"},
        {"op": "add", "step": {"id": "c", "tool": "note", "args": {"text": "x"}}, "before": "b"},
        {"op": "move", "stepId": "c"},
        {"op": "set", "path": "budget.calls", "value": 3},
    ]
    revised = revise(schedule.run, message(*edits, by="ann", comment="why"), NOW)
    assert schedule.run.model_dump() == before
    assert [each.id for each in revised.plan.steps] == ["c", "a", "b"]
    assert revised.plan.budget is not None
    assert revised.plan.budget.calls == 3
    assert (revised.plan.version, revised.revision.version, revised.revision.by) == (2, 2, "ann")
    assert '~ b.description: "" -> "new"' in revised.revision.diff
    assert carried_out(schedule, revised).steps["c"].status is Status.PENDING


def test_a_running_plan_follows_its_new_dependencies() -> None:
    schedule = Schedule(run_of(step("a"), step("b"), step("c", "a")))
    schedule.begin(NOW)
    schedule.start("a", NOW)
    edits: list[dict[str, Any]] = [
        {"op": "set", "stepId": "b", "path": "dependsOn", "value": ["a"]},
        {"op": "set", "stepId": "c", "path": "dependsOn", "value": None},
    ]
    run = carried_out(schedule, revise(schedule.run, message(*edits), NOW))
    assert (run.steps["b"].status, run.steps["c"].status) == (Status.BLOCKED, Status.READY)
    assert schedule.settle("a", completed(), NOW) == ["b"]


def test_a_step_blocked_for_good_comes_back_when_its_dependency_is_taken_out() -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a"), step("c", "b")))
    schedule.begin(NOW)
    schedule.start("a", NOW)
    carried_out(schedule, revise(schedule.run, message({"op": "skip", "stepId": "b"}), NOW))
    assert statuses(schedule.run)["b"] == "skipped"
    with pytest.raises(Refused, match="not skipped"):
        revise(schedule.run, message({"op": "unskip", "stepId": "c"}), NOW)
    carried_out(schedule, revise(schedule.run, message({"op": "unskip", "stepId": "b"}), NOW))
    assert statuses(schedule.run)["b"] == "blocked"
    assert schedule.run.steps["b"].result is None


def test_what_has_begun_is_not_edited_and_a_newer_version_is_shown() -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a")))
    schedule.begin(NOW)
    schedule.start("a", NOW)
    with pytest.raises(Refused) as late:
        revise(schedule.run, message({"op": "skip", "stepId": "a"}), NOW)
    assert late.value.code == "TOO_LATE"
    revised = revise(schedule.run, message({"op": "set", "stepId": "b", "path": "notes", "value": "n"}), NOW)
    run = carried_out(schedule, revised)
    run.revisions = [revised.revision]
    with pytest.raises(Refused) as stale:
        revise(run, message({"op": "skip", "stepId": "b"}, expectVersion=1), NOW)
    assert stale.value.code == "STALE_VERSION"
    assert "b.notes" in stale.value.message


def test_every_problem_of_the_edited_plan_is_told() -> None:
    schedule = reviewed(step("a"), step("b", "a"))
    edits: list[dict[str, Any]] = [
        {"op": "set", "stepId": "a", "path": "dependsOn", "value": ["b"]},
        {"op": "set", "stepId": "b", "path": "tool", "value": "nope"},
    ]
    with pytest.raises(InvalidPlan) as caught:
        revise(schedule.run, message(*edits), NOW)
    assert {problem.code for problem in caught.value.problems} == {"PLAN_CYCLE", "UNKNOWN_TOOL"}


def added(name: str, text: str = "") -> dict[str, Any]:
    """The edit that adds a step."""
    return {"op": "add", "step": {"id": name, "tool": "note", "args": {"text": text}}}


def test_a_step_that_is_skipped_and_removed_at_once_is_gone() -> None:
    schedule = reviewed(step("a"), step("b"))
    edits = [added("c"), {"op": "skip", "stepId": "c"}, {"op": "remove", "stepId": "c"}, {"op": "skip", "stepId": "b"}]
    revised = revise(schedule.run, message(*edits, {"op": "remove", "stepId": "b"}), NOW)
    assert revised.skipped == {}
    assert not [line for line in revised.revision.diff if "skipped" in line]
    assert set(carried_out(schedule, revised).steps) == {"a"}


def test_a_step_put_in_the_place_of_another_with_its_id_is_a_step_of_its_own() -> None:
    schedule = reviewed(step("a"), step("b"))
    run = carried_out(schedule, revise(schedule.run, message({"op": "skip", "stepId": "b"}), NOW))
    assert run.steps["b"].status is Status.SKIPPED
    revised = revise(run, message({"op": "remove", "stepId": "b"}, added("b", "other")), NOW)
    assert revised.changed == {"b"}
    assert carried_out(schedule, revised).steps["b"].status is Status.PENDING
    again = [added("b"), {"op": "skip", "stepId": "b"}]
    assert revise(run, message({"op": "remove", "stepId": "b"}, *again), NOW).skipped == {"b": "skipped by a reviewer"}


def test_no_step_is_put_in_the_place_of_one_that_another_has_begun_without() -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a")))
    schedule.begin(NOW)
    carried_out(schedule, revise(schedule.run, message({"op": "skip", "stepId": "a"}), NOW))
    _run_one(schedule)
    with pytest.raises(Refused) as late:
        revise(schedule.run, message({"op": "remove", "stepId": "a"}, added("a")), NOW)
    assert late.value.code == "TOO_LATE"


_IDS = st.sampled_from(["a", "b", "c", "d"])
_EDITS = st.one_of(
    st.builds(
        lambda name, needs: {"op": "set", "stepId": name, "path": "dependsOn", "value": needs}, _IDS, st.lists(_IDS)
    ),
    st.builds(added, _IDS),
    st.builds(lambda op, name: {"op": op, "stepId": name}, st.sampled_from(["remove", "skip", "unskip"]), _IDS),
    st.builds(lambda name, after: {"op": "move", "stepId": name, "after": after}, _IDS, st.none() | _IDS),
)


@given(st.lists(st.lists(_EDITS, min_size=1, max_size=4), max_size=8), st.data())
def test_whatever_is_edited_the_plan_comes_to_its_end(batches: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    schedule = Schedule(run_of(step("a"), step("b", "a"), step("c", "b")))
    schedule.begin(NOW)
    for edits in batches:
        _edit_or_refuse(schedule, edits)
        runs: bool = data.draw(st.booleans())
        if schedule.ready and runs:
            _run_one(schedule)
    while schedule.ready:
        _run_one(schedule)
    assert schedule.idle
    assert schedule.end(NOW) in (PlanStatus.COMPLETED, PlanStatus.PARTIAL)


def _edit_or_refuse(schedule: Schedule, edits: list[dict[str, Any]]) -> None:
    before = schedule.run.model_dump()
    try:
        revised = revise(schedule.run, message(*edits), NOW)
    except PlanError:
        assert schedule.run.model_dump() == before
        return
    run = carried_out(schedule, revised)
    assert set(run.steps) == {each.id for each in run.plan.steps}
    again = Schedule(run)
    assert (again.counts, list(again.ready)) == (+schedule.counts, list(schedule.ready))


def _run_one(schedule: Schedule) -> None:
    name = next(iter(schedule.ready))
    schedule.start(name, NOW)
    schedule.settle(name, completed(), NOW)


def test_the_change_log_and_a_difference_are_bounded() -> None:
    log: list[Revision] = []
    for version in range(MAX_REVISIONS + 10):
        log = logged(log, Revision(version=version + 1, time=NOW, before=plan_of(step("a"))))
    assert (len(log), log[-1].version) == (MAX_REVISIONS, MAX_REVISIONS + 10)
    assert sum(each.before is not None for each in log) == MAX_KEPT
    many = plan_of(*(step(f"s{number}") for number in range(500)))
    assert len(differences(plan_of(step("a")), many)) == MAX_LINES + 1


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("a.b", 1, {"a": {"b": 1, "c": [1, 2]}}),
        ("a.c[0]", 9, {"a": {"c": [9, 2]}}),
        ("a.c.2", 3, {"a": {"c": [1, 2, 3]}}),
        ("a.c[1]", None, {"a": {"c": [1]}}),
        ("a", None, {}),
        ("x.y.z", 1, {"a": {"c": [1, 2]}, "x": {"y": {"z": 1}}}),
    ],
)
def test_a_place_in_data_is_set(path: str, value: Any, expected: dict[str, Any]) -> None:
    data: dict[str, Any] = {"a": {"c": [1, 2]}}
    put(data, path, value)
    assert data == expected


@pytest.mark.parametrize("path", ["", "a..b", "a[x]", "a.c[7]", "a.c.x", "a[", "."])
def test_a_place_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        put({"a": {"c": [1, 2]}}, path, 1)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"op": "set", "stepId": "a", "path": "text", "value": 1}, "it is an argument of note: set a.args.text"),
        ({"op": "set", "stepId": "a", "path": "txt", "value": 1}, "did you mean a.args.text?"),
        ({"op": "set", "stepId": "a", "path": "retries", "value": 1}, "did you mean a.retry?"),
        (
            {"op": "set", "stepId": "a", "path": "id", "value": "b"},
            "'id' of step 'a' cannot be set; set one of approval,",
        ),
        (
            {"op": "set", "stepId": "args", "path": "text", "value": "b"},
            "'args.text' names no step; write STEP.args.text, where STEP is 'a'",
        ),
        ({"op": "set", "stepId": "undo.args", "path": "text", "value": 1}, "write STEP.undo.args.text, where STEP is"),
        ({"op": "set", "path": "titel", "value": "b"}, "'titel' of the plan cannot be set; did you mean 'title'?"),
        ({"op": "set", "path": "steps", "value": []}, "cannot be set; steps are added, removed and moved one by one"),
        ({"op": "add", "step": {"steps": []}}, "this is a plan, and not a step; give one step: {id: NAME, tool: TOOL,"),
        ({"op": "add", "step": {"tool": "note"}}, "a step has an `id`, a text that is not empty; write {id: NAME,"),
    ],
)
def test_an_edit_of_what_there_is_not_is_answered_with_what_is_meant(edit: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused) as refused:
        revise(reviewed(step("a")).run, message(edit), NOW)
    assert says in refused.value.message


def test_what_uses_a_step_that_is_removed_is_named() -> None:
    steps = [step("a"), step("b", "a"), Step(id="c", tool="note", args={"text": "{{a.x}} {{b}}"})]
    run = run_of(*steps, outputs={"o": "a.x"})
    schedule = Schedule(run)
    schedule.review()
    with pytest.raises(InvalidPlan) as invalid:
        revise(schedule.run, message({"op": "remove", "stepId": "a"}), NOW)
    assert [(each.code, each.step_id, each.message) for each in invalid.value.problems] == [
        ("UNKNOWN_DEPENDENCY", "b", "'a' cannot be removed, as step 'b' waits for it; change or remove step 'b' first"),
        ("BAD_REFERENCE", "c", "'a' cannot be removed, as step 'c' uses its value; change or remove step 'c' first"),
        ("BAD_REFERENCE", None, "'a' cannot be removed, as `outputs.o` of the plan uses its value; change that first"),
    ]
    edits = [{"op": "remove", "stepId": name} for name in "ac"]
    with pytest.raises(InvalidPlan) as invalid:
        revise(schedule.run, message(*edits, {"op": "set", "stepId": "b", "path": "args.text", "value": "$no"}), NOW)
    assert [each.step_id for each in invalid.value.problems if "cannot be removed" in each.message] == ["b", None]
    assert any("'$no' is not a step of the plan" in each.message for each in invalid.value.problems)


def test_a_problem_in_other_words_is_new_only_in_what_the_edits_set() -> None:
    run = reviewed(Step(id="a", tool="nix"), Step(id="b", tool="nux")).run
    run.problems = [at_worker(each) for each in errors(problems(run.plan, run.facts.tools))]
    other = {"op": "set", "path": "title", "value": "t"}
    assert [each.step_id for each in revise(run, message(other), NOW).problems] == ["a", "b"]
    mended = {"op": "set", "stepId": "a", "path": "tool", "value": "sleep"}
    seconds = {"op": "set", "stepId": "a", "path": "args", "value": {"seconds": 1}}
    assert [each.step_id for each in revise(run, message(mended, seconds), NOW).problems] == ["b"]
    with pytest.raises(InvalidPlan) as invalid:
        revise(run, message({"op": "set", "stepId": "b", "path": "tool", "value": "nyx"}), NOW)
    assert [each.step_id for each in invalid.value.problems] == ["b"]


def test_what_the_check_found_to_fail_for_certain_stays_a_problem_until_it_is_mended() -> None:
    loop = Step.model_validate({"id": "a", "tool": "note", "args": {"text": "x"}, "forEach": ["x"]})
    schedule = reviewed(loop, Step(id="b", tool="note", args={"text": "$a.x"}))
    run, other = schedule.run, {"op": "set", "path": "title", "value": "t"}
    assert not revise(run, message(other), NOW).problems  # a run of an older version, whose check did not find it
    run.problems = errors(certain(problems(run.plan, run.facts.tools)))
    assert [each.field for each in run.problems] == ["args.text"]
    assert revise(run, message(other), NOW).problems == run.problems
    mended = {"op": "set", "stepId": "b", "path": "args.text", "value": "$a[0].x"}
    assert not revise(run, message(mended), NOW).problems

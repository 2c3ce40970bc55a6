"""What a run that goes on from an ended one keeps, and what it does again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plansurvive.plans.activity_io import Facts, Return
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.approvals import decide
from plansurvive.plans.execution.file_tracking import note_returned
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.resume import base_id, foreseen, rerun_from, rerun_only, resumed, run_id
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.file_stamps import stamp_of
from plansurvive.plans.files.file_check import FilesSeen
from plansurvive.plans.model import Budget, Step
from plansurvive.plans.run import PlanStatus, Run, Status
from tests.plans.building import NOW, TOOLS, begun, completed, failed, later, skipped, spec, statuses, step

LATER = NOW + timedelta(hours=1)


def _ended(*steps: Step, broken: tuple[str, ...] = (), stop_at: str = "", without: tuple[str, ...] = ()) -> Run:
    """An ended run: steps ran in order until `stop_at`, some failed, some were skipped."""
    schedule = begun(*steps)
    while schedule.ready:
        name = next(iter(schedule.ready))
        if name == stop_at:
            schedule.run.interrupted = True
            schedule.stop("interrupted", NOW)
            break
        schedule.start(name, NOW)
        schedule.run.steps[name].calls += 1
        outcome = failed() if name in broken else skipped() if name in without else completed(f"value of {name}")
        schedule.settle(name, outcome, NOW)
    schedule.end(NOW, schedule.run.was_cut_short)
    return schedule.run


CHAIN = (step("a"), step("b", "a"), step("c", "b"), step("d", "a"))


def test_completed_steps_are_kept_with_their_values_and_the_others_begin_anew() -> None:
    old = _ended(*CHAIN, broken=("b",))
    run = resumed(old, "p-r2", LATER, "ann")
    assert (run.plan.id, run.resumes, run.status) == ("p-r2", "p", PlanStatus.DRAFT)
    assert statuses(run) == {"a": "completed", "b": "pending", "c": "pending", "d": "completed"}
    result = run.steps["a"].result
    assert result is not None
    assert result.value == "value of a"
    assert list(Schedule(run).begin(LATER)) == ["b"]
    assert run.log[-1].text == "resumes plan 'p' by ann: 2 steps to run (b, c), 2 retained"


def test_what_a_new_run_would_do_is_known_before_it_starts() -> None:
    old = _ended(*CHAIN, broken=("b",))
    assert foreseen(old, resumed(old, "p-r2", LATER)) == (["b", "c"], ["a", "d"], [], {})
    assert foreseen(old, rerun_from(old, "d", "p-r2", LATER)) == (["b", "c", "d"], ["a"], [], {})
    assert foreseen(old, rerun_only(old, "d", "p-r2", LATER)) == (["d"], ["a"], ["b", "c"], {})


def test_the_log_names_the_first_steps_that_run_again() -> None:
    old = _ended(step("a"), *(step(f"s{number}", "a") for number in range(6)), broken=("a",))
    entry = resumed(old, "p-r2", LATER).log[-1]
    assert entry.text == "resumes plan 'p': 7 steps to run (a, s0, s1 and 4 more), 0 retained"


def test_a_plan_is_resumed_with_a_larger_budget_which_is_a_version_of_it() -> None:
    old = _ended(*CHAIN, broken=("b",))
    old.plan = old.plan.model_copy(update={"budget": Budget(calls=2, ask=False)})
    run = resumed(old, "p-r2", LATER, changes=[Replacement(step_id="budget", path="calls", value=9)])
    assert (run.plan.budget, run.plan.version) == (Budget(calls=9, ask=False), old.plan.version + 1)
    old.plan = old.plan.model_copy(update={"budget": None})
    run = resumed(old, "p-r2", LATER, changes=[Replacement(step_id="budget", path="tokens", value=9)])
    assert run.plan.budget == Budget(tokens=9), "what is not set is as in a plan file"
    for path, value in (("calls", 0), ("money", 5)):
        with pytest.raises(Refused, match=path) as caught:
            resumed(old, "p-r2", LATER, changes=[Replacement(step_id="budget", path=path, value=value)])
        assert caught.value.code == "BAD_EDIT"


def test_the_old_run_is_left_as_it_was() -> None:
    old = _ended(*CHAIN, broken=("b",))
    before = old.model_dump_json()
    resumed(old, "p-r2", LATER)
    rerun_from(old, "a", "p-r2", LATER, changes=[Replacement(step_id="a", path="args.more", value=1)])
    assert old.model_dump_json() == before


def test_the_numbers_of_events_go_on() -> None:
    old = _ended(*CHAIN, stop_at="b")
    assert resumed(old, "p-r2", LATER).seq > old.seq


def test_what_people_skipped_stays_skipped() -> None:
    old = _ended(*CHAIN, without=("d",), broken=("c",))
    assert statuses(resumed(old, "p-r2", LATER))["d"] == "skipped"


def test_nothing_is_left_to_resume_of_a_whole_run() -> None:
    with pytest.raises(Refused, match="nothing to resume"):
        resumed(_ended(*CHAIN), "p-r2", LATER)


def test_a_rerun_begins_at_its_step_and_does_what_follows() -> None:
    run = rerun_from(_ended(*CHAIN), "b", "p-r2", LATER)
    assert statuses(run) == {"a": "completed", "b": "pending", "c": "pending", "d": "completed"}


def test_a_rerun_of_one_step_keeps_what_failed_and_leaves_out_what_never_ran() -> None:
    old = _ended(*CHAIN, broken=("b",))
    run = rerun_only(old, "d", "p-r2", LATER)
    assert statuses(run) == {"a": "completed", "b": "skipped", "c": "skipped", "d": "pending"}
    again = resumed(Schedule(run).run, "p-r3", LATER)
    assert statuses(again) == {"a": "completed", "b": "pending", "c": "pending", "d": "pending"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Replacement(step_id="z", path="args.text", value=1), "UNKNOWN_STEP"),
        (Replacement(step_id="a", path="args.text", value=1), "TOO_LATE"),
        (Replacement(step_id="b", path="tool", value="x"), "BAD_EDIT"),
        (Replacement(step_id="b", path="timeout", value="long"), "BAD_EDIT"),
        (Replacement(step_id="b", path="args.text[5]", value=1), "BAD_EDIT"),
    ],
)
def test_a_change_that_counts_for_nothing_is_refused(change: Replacement, code: str) -> None:
    with pytest.raises(Refused) as error:
        rerun_from(_ended(*CHAIN), "b", "p-r2", LATER, changes=[change])
    assert error.value.code == code


def test_a_change_makes_a_new_version() -> None:
    change = Replacement(step_id="b", path="args.more", value=[1])
    run = rerun_from(_ended(*CHAIN), "b", "p-r2", LATER, changes=[change])
    assert run.plan.steps[1].args["more"] == [1]
    assert run.plan.version == 2


def test_one_step_alone_needs_what_it_depends_on() -> None:
    with pytest.raises(Refused, match="needs 'b'"):
        rerun_only(_ended(*CHAIN, broken=("b",)), "c", "p-r2", LATER)
    with pytest.raises(Refused, match="no step 'z'"):
        rerun_only(_ended(*CHAIN), "z", "p-r2", LATER)


def test_an_approval_counts_on_only_for_a_step_that_was_never_called() -> None:
    old = begun(step("a"), step("b", "a")).run
    for name in ("a", "b"):
        decide(old, Decide(step_id=name, approved=True), NOW, "signal")
    schedule = Schedule(old)
    schedule.start("a", NOW)
    old.steps["a"].calls = 1
    schedule.settle("a", failed(), NOW)
    schedule.end(NOW)
    assert list(resumed(old, "p-r2", LATER).decisions) == ["b"]


def test_an_interruption_that_came_too_late_changes_nothing() -> None:
    schedule = begun(step("a"))
    schedule.start("a", NOW)
    schedule.run.interrupted = True
    schedule.stop("interrupted", NOW)
    schedule.settle("a", completed(), NOW)
    assert not schedule.run.was_cut_short
    assert schedule.run.steps["a"].status is Status.COMPLETED


def test_later_runs_are_numbered() -> None:
    assert [run_id("x", 2), base_id("x-r2"), base_id("x"), base_id("x-r1"), base_id("x-r12")] == [
        "x-r2", "x", "x", "x-r1", "x",
    ]  # fmt: skip


@pytest.mark.parametrize("who", ["a command", "a command before the read", "nobody"])
def test_what_the_plan_itself_wrote_after_it_read_a_file_is_no_change_by_others(who: str) -> None:
    pure = {"effect": "pure", "reads": "reported"}
    facts = Facts(tools=TOOLS | {"read_file": spec("read_file", {"path": {}}, **pure)}, workspace="/w")
    read = step("read", tool="read_file", args={"path": "a.txt"})
    order = [read, step("write", tool="run_command", args={"command": "date >> a.txt"})]
    if who == "a command before the read":
        order.reverse()
    schedule = begun(*order, step("bad"), facts=facts)
    for number, each in enumerate([*order, step("bad")]):
        schedule.start(each.id, later(number))
        schedule.run.steps[each.id].calls += 1
        returned = Return(duration=1, read={"a.txt": stamp_of(b"a")} if each is read else {})
        if each.id == "write" and who != "nobody":
            returned = Return(duration=1, wrote={"a.txt": None})
        note_returned(schedule.run, each, returned, later(number))
        schedule.settle(each.id, failed() if each.id == "bad" else completed(), later(number))
    schedule.end(later(9))
    new = resumed(schedule.run, "p-r2", LATER)
    assert schedule.run.files.stamps["a.txt"].state == "known", "the run that ended stays as it was"
    assert new.kept.readers == {"a.txt": ["read"]}
    compared = FilesSeen.of(new.files, "/w").stamps
    assert list(compared) == ([] if who == "a command" else ["a.txt"])

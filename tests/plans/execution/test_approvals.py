"""Who is asked, and what a decision does: the first one counts, a refused one changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.change_log import Revision
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.approvals import ask, check, deadline_of, decide, is_needed, is_waived, rule_of
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.run import Change, Options, Run, Status
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.views.progress.events import events
from tests.plans.building import NOW, TOOLS, begun, completed, failed, later, run_of, step
from tests.plans.flow.player import Player, note, plan


def deleting(**fields: Any) -> Step:
    return step(fields.pop("id", "a"), tool="delete_file", args={"path": "x"}, **fields)


def reading(**fields: Any) -> Step:
    return step("a", tool="read_file", args={"path": "x"}, **fields)


NOBODY, ALL = Options(), Options(approve_all=True)
LAX, STRICT = Facts(tools=TOOLS), Facts(tools=TOOLS, strict_approvals=True)


@pytest.mark.parametrize(
    ("a", "options", "facts", "asked", "waived"),
    [
        (deleting(), NOBODY, LAX, True, False),
        (reading(), NOBODY, LAX, False, False),
        (reading(requires_approval=True), NOBODY, LAX, True, False),
        (deleting(requires_approval=False), NOBODY, LAX, False, True),
        (deleting(), ALL, LAX, False, True),
        (reading(requires_approval=True), ALL, LAX, False, True),
        (deleting(), ALL, STRICT, True, False),
        (deleting(requires_approval=False), NOBODY, STRICT, True, False),
        (reading(requires_approval=True), ALL, STRICT, True, False),
        (reading(requires_approval=False), NOBODY, STRICT, False, False),
    ],
)
def test_a_person_is_asked_unless_it_was_waived(
    a: Step, options: Options, facts: Facts, asked: bool, waived: bool
) -> None:
    run = run_of(a, options=options, facts=facts)
    call = upcoming(run, a).call
    assert (is_needed(run, a, call), is_waived(run, a, call)) == (asked, waived)


def test_the_time_limit_is_the_steps_own_or_the_plans_or_none() -> None:
    own, plans = {"timeout": 5, "onTimeout": "fail"}, {"approval": {"timeout": 9}}
    for a, defaults, seconds in [(deleting(approval=own), plans, 5), (deleting(), plans, 9)]:
        run = run_of(a, defaults=defaults)
        assert deadline_of(run, a, NOW) == later(seconds)
    assert deadline_of(run_of(deleting()), deleting(), NOW) is None
    assert rule_of(run_of(deleting()), deleting()).on_timeout == "deny"


def approve(**fields: Any) -> Decide:
    return Decide.model_validate({"stepId": "a", "approved": True} | fields)


def refused(run: Run, message: Decide) -> Refused:
    """The refusal; the run is as it was."""
    before = run.model_dump()
    with pytest.raises(Refused) as caught:
        decide(run, message, NOW, "signal")
    assert run.model_dump() == before
    with pytest.raises(Refused):
        check(run, message)
    return caught.value


def test_a_decision_that_comes_before_the_step_waits_counts() -> None:
    run = run_of(deleting())
    decide(run, approve(by="ann", comment="go"), NOW, "signal")
    assert run.decisions["a"].approved
    assert run.log[-1].text == "step 'a' approved by ann: go"
    assert (run.log[-1].kind, run.log[-1].step_id) == ("approved", "a")


@pytest.mark.parametrize(("first", "word"), [(True, "approved"), (False, "denied")])
def test_a_second_decision_is_refused_and_named(first: bool, word: str) -> None:
    run = run_of(deleting())
    decide(run, approve(approved=first, by="ann"), NOW, "update")
    refusal = refused(run, approve(approved=not first, by="bob"))
    assert refusal.code == "ALREADY_DECIDED"
    said = f"step 'a' was already {word} by ann on {NOW:%Y-%m-%d at %H:%M} UTC"
    assert refusal.message == f"{said}; `plan withdraw p a` takes it back"
    run.steps["a"].status = Status.RUNNING
    assert refused(run, approve(approved=first)).message == said


def test_a_decision_on_a_step_the_plan_has_not_is_refused() -> None:
    assert refused(run_of(deleting()), approve(stepId="b")).code == "UNKNOWN_STEP"


@pytest.mark.parametrize("end", ["completed", "running", "permanently blocked"])
def test_a_decision_on_a_step_that_has_begun_or_never_will_is_refused(end: str) -> None:
    schedule = begun(step("z"), step("a", "z"))
    schedule.start("z", NOW)
    schedule.settle("z", failed() if end == "permanently blocked" else completed(), NOW)
    if end != "permanently blocked":
        schedule.start("a", NOW)
    if end == "completed":
        schedule.settle("a", completed(), NOW)
    assert refused(schedule.run, approve()).code == "TOO_LATE"


def test_a_decision_on_another_version_of_the_plan_is_refused() -> None:
    run = run_of(deleting(), version=3)
    refusal = refused(run, approve(version=2))
    assert refusal.code == "STALE_VERSION"
    assert "about version 2, the plan is at version 3" in refusal.message
    assert decide(run, approve(version=3), NOW, "signal").approved


def test_changed_arguments_take_the_place_of_the_steps() -> None:
    run = run_of(deleting())
    decide(run, approve(args={"path": "y"}), NOW, "signal")
    assert run.args_of(run.plan.steps[0]) == {"path": "y"}
    assert "with changed arguments" in run.log[-1].text


def test_an_approver_who_replaces_a_number_by_a_truth_value_changes_the_plan() -> None:
    run = run_of(step("a", tool="run_command", args={"command": "make", "env": {"DEBUG": 1}}))
    decide(run, approve(args={"command": "make", "env": {"DEBUG": True}}, by="ann"), NOW, "signal")
    [change] = run.revisions
    assert '~ a.args.env: {"DEBUG": 1} -> {"DEBUG": true}' in change.diff


def test_what_an_approver_changed_in_their_step_outdates_no_decision_on_another() -> None:
    run = run_of(deleting(), deleting(id="b"), deleting(id="c"), facts=LAX)
    decide(run, approve(args={"path": "y"}, by="ann"), NOW, "signal")
    [change] = run.revisions
    assert (run.plan.version, change.ops, change.by) == (2, ["set a args.path"], "ann")
    assert '~ a.args.path: "x" -> "y"' in change.diff
    assert decide(run, approve(stepId="b", version=1), NOW, "signal").approved
    run.plan = run.plan.model_copy(update={"version": 3})
    run.revisions = [*run.revisions, Revision(version=3, time=NOW, ops=["set a notes"])]
    assert refused(run, approve(stepId="c", version=2)).code == "STALE_VERSION", "an edit came between"
    assert refused(run, approve(stepId="c", version=9)).code == "STALE_VERSION", "there is no such version yet"


def test_a_step_keeps_what_it_asked_before_small_and_only_the_last_ten() -> None:
    run = begun(deleting()).run
    for number in range(14):
        run.steps["a"].changes.append(Change(seq=run.next_seq(), time=NOW, status=Status.READY))
        ask(run, "a", {"path": str(number) * (5_000 if number == 13 else 1)}, f"digest {number}")
    state = run.steps["a"]
    assert (len(state.showed), len(state.asks)) == (10, 14)
    *_, before, last = [event["asked"] for event in events(run, 0) if "asked" in event]
    assert before == {"args": {"path": "12"}}
    assert (last["cut"], last["length"] > 5_000, len(last["args"]["path"]) < 1_000) == (True, True, True)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "needs 'path'"),
        ({"path": 5}, "should be a string; it is 5"),
        ({"path": "x", "force": True}, "no argument 'force'"),
        ({"path": "$gone"}, "is not a step of the plan"),
        ({"path": "$late"}, "is not a step of the plan"),
        ({"path": "$a"}, "own value"),
        ({"path": "$done.x["}, "not a JMESPath"),
    ],
)
def test_changed_arguments_are_validated(args: dict[str, Any], why: str) -> None:
    run = with_others()
    refusal = refused(run, approve(args=args))
    assert refusal.code == "INVALID_ARGS"
    assert why in refusal.message


def with_others() -> Run:
    """A run whose step `a` needs `done` (completed) and `first`, beside `late`."""
    schedule = begun(deleting(depends_on=["first"]), step("done"), step("first"), step("late", "first"))
    schedule.start("done", NOW)
    schedule.settle("done", completed("x"), NOW)
    return schedule.run


@pytest.mark.parametrize("path", ["$done", "{{first.x}}/y", "plain", "$$x"])
def test_changed_arguments_may_use_what_is_there_when_the_step_starts(path: str) -> None:
    assert decide(with_others(), approve(args={"path": path}), NOW, "signal").args == {"path": path}


def test_changed_arguments_wait_for_the_plan_to_be_checked() -> None:
    assert refused(run_of(deleting(), facts=Facts()), approve(args={"path": "y"})).code == "TOO_EARLY"


def test_a_decision_while_the_step_waits_lets_it_go_on() -> None:
    schedule: Schedule = begun(deleting())
    schedule.ask("a", NOW)
    decide(schedule.run, approve(), NOW, "signal")
    schedule.answered("a")
    schedule.start("a", NOW)
    assert schedule.running == 1


@pytest.mark.parametrize(
    ("must_sign", "via", "verified", "who"),
    [
        (True, "web", True, "ann@example.org (web, verified)"),
        (False, "web", True, "ann@example.org (web)"),
        (True, "link", False, "ann@example.org (link)"),
        (True, "", False, "ann@example.org"),
    ],
)
def test_a_name_is_verified_only_where_decisions_are_signed(
    must_sign: bool, via: Any, verified: bool, who: str
) -> None:
    run = run_of(deleting(), facts=LAX.model_copy(update={"must_sign": must_sign}))
    message = Decide(step_id="a", approved=True, by="ann@example.org", via=via, verified=verified)
    decision = decide(run, message, NOW, "update")
    assert (decision.who, run.log[-1].text) == (who, f"step 'a' approved by {who}")


def test_a_decision_on_a_loop_that_runs_names_the_items_that_await_one() -> None:
    asks = note("work", "$item") | {"requiresApproval": True}
    player = Player(plan({"id": "each", "forEach": {"items": ["a", "b"]}, "steps": [asks]})).play()
    assert refused(player.run, approve(stepId="each")).message == (
        "step 'each' is already running and is decided by what is inside it: 'each[0].work' awaits a decision, "
        "'each[*].work' names all such items"
    )


def test_a_digest_of_another_step_is_named_as_such_and_one_of_none_is_not_called_a_change() -> None:
    played = Player(plan(note("a", "x") | {"requiresApproval": True}, note("b", "y") | {"requiresApproval": True}))
    played.play()
    run = played.run
    for digest, says in (
        (run.steps["b"].digest, "the digest is that of step 'b'"),
        ("0" * 64, "may have changed since"),
    ):
        with pytest.raises(Refused) as refused:
            check(run, Decide(step_id="a", approved=True, digest=digest))
        assert refused.value.code == "STALE_DIGEST"
        assert says in refused.value.message
        assert f"than that of step 'a' (now {(run.steps['a'].digest or '')[:12]}…)" in refused.value.message
        assert f"`plan pending {run.plan.id} a`" in refused.value.message

"""What a message to a plan that has ended is answered: who decided there and when, and a command that still does it."""

from __future__ import annotations

import pytest

from plansurvive.client.closed import why_closed, why_closed_of
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.approvals import decide
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.run import Run
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, completed, failed, step

DAY = f"{NOW:%Y-%m-%d %H:%M:%S} UTC"
ENDED = "plan 'p' has ended (completed) and accepts no more messages"
PARTIAL = ENDED.replace("completed", "partial")


def _ended(*, broken: bool) -> Run:
    """An ended run of two steps, of which the second one may have failed; ann approved the first."""
    schedule = begun(step("a"), step("b", "a"))
    decide(schedule.run, Decide(step_id="a", approved=True, by="ann"), NOW, "update")
    for name, outcome in (("a", completed("x")), ("b", failed() if broken else completed("y"))):
        schedule.start(name, NOW)
        schedule.settle(name, outcome, NOW)
    schedule.end(NOW, schedule.run.was_cut_short)
    return schedule.run


def test_of_a_step_that_was_decided_it_says_by_whom_and_when() -> None:
    said = f"{ENDED}; step 'a' was approved by ann, {DAY}; see: plan summary p"
    assert why_closed(_ended(broken=False), "a") == said


def test_of_a_step_that_asked_no_one_and_of_one_that_does_not_exist_it_says_that() -> None:
    run = _ended(broken=False)
    assert "; step 'b' is completed, and asked no one; " in why_closed(run, "b")
    assert "; the plan has no step 'nostep'; " in why_closed(run, "nostep")


def test_it_proposes_to_resume_exactly_where_that_is_not_refused() -> None:
    done, broken = _ended(broken=False), _ended(broken=True)
    with pytest.raises(Refused, match="nothing to resume"):
        resumed(done, "p-r2", NOW)
    assert "resume" not in why_closed(done)
    assert resumed(broken, "p-r2", NOW)
    assert why_closed(broken) == f"{PARTIAL}; `plan resume p` runs what is not done"
    assert why_closed(broken, "b").endswith("`plan resume p` runs what is not done, and asks there again if it must")


def test_it_names_the_run_that_resumed_the_plan_and_how_a_field_is_still_set() -> None:
    done, broken = _ended(broken=False), _ended(broken=True)
    assert why_closed(broken, "b", "p-r2").endswith("; 'p-r2' resumed it: plan show p-r2")
    again = "`plan rerun p --from STEP --set STEP.FIELD=VALUE` runs steps again as changed"
    assert why_closed(done, sets=True) == f"{ENDED}; {again}"
    assert why_closed(broken, sets=True).endswith("`plan resume p --set STEP.FIELD=VALUE` runs what is not done")


def test_of_an_agent_which_answers_with_its_view_it_says_who_decided_about_the_call() -> None:
    schedule = begun(step("call_1"), step("call_2"))
    decide(schedule.run, Decide(step_id="call_1", approved=True, by="ann"), NOW, "update")
    view = PlanView.read(plan_view(schedule.run, schedule))
    ended = f"agent 'agent-p-s' has ended ({view.status}) and accepts no more messages"
    said = f"step 'call_1' was approved by ann, {DAY}"
    assert why_closed_of(view, "agent-p-s", "call_1") == f"{ended}; {said}; see: plan show agent-p-s"
    assert why_closed_of(view, "agent-p-s", "call_2") == f"{ended}; see: plan show agent-p-s"

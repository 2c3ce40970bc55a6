"""What a denial says of the steps that wait for the denied one, and of one that was denied before its turn."""

from __future__ import annotations

from plansurvive.plans.execution.approvals import decide
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.steps.denied import will_not_run
from plansurvive.plans.views.steps.row import row
from plansurvive.plans.views.summary import summary_of
from plansurvive.plans.views.text import text
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, completed, step


def _view(schedule: Schedule) -> PlanView:
    return PlanView.read(plan_view(schedule.run, schedule))


def test_the_steps_that_wait_for_a_denied_one_are_named_also_through_others() -> None:
    schedule = begun(step("d", "c"), step("a"), step("b", "a"), step("c", "b"), step("e", "a"), step("other"))
    steps = _view(schedule).steps
    assert will_not_run(steps, "c") == "; d waits for it and will not run"
    assert will_not_run(steps, "b") == "; d, c wait for it and will not run"
    assert will_not_run(steps, "a") == "; d, b, c and 1 more wait for it and will not run"
    assert will_not_run(steps, "other") == ""
    assert will_not_run(steps, "each[a]") == ""


def test_a_step_that_was_denied_before_its_turn_says_so_everywhere() -> None:
    schedule = begun(step("a"), step("b", "a"), step("c", "b"))
    schedule.start("a", NOW)
    decide(schedule.run, Decide(step_id="b", approved=False, by="ann", comment="not today"), NOW, "update")
    said = "denied by ann, 2026-01-20 10:30:00 UTC: not today"
    assert f"      Notes: {said}" in text(schedule.run).splitlines()
    assert [each.reason for each in summary_of(schedule.run).blocked] == [said, ""]
    assert [row(each).reason for each in _view(schedule).steps] == ["", said, ""]
    schedule.settle("a", completed(), NOW)
    decided_later = begun(step("a"), step("b", "a"))
    decide(decided_later.run, Decide(step_id="b", approved=True, by="ann"), NOW, "update")
    assert "Notes: denied" not in text(decided_later.run)

"""`plan show ID STEP` of a step with an agent: the calls that were denied, which were never made."""

from __future__ import annotations

from plansurvive.client.cli.items.inside import denied_calls, unmade_calls
from plansurvive.plans.execution.approvals import decide
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, skipped, step


def test_only_the_denied_calls_are_listed_with_who_denied_them() -> None:
    schedule = begun(step("call_1"), step("call_2"), step("call_3"))
    run = schedule.run
    decide(run, Decide(step_id="call_1", approved=True, by="ann"), NOW, "update")
    decide(run, Decide(step_id="call_2", approved=False, by="ann", comment="keep it"), NOW, "update")
    [said] = denied_calls("agent-p-s", PlanView.read(plan_view(run, schedule)).steps)
    tool = run.plan.steps[1].tool
    assert said.startswith(f"agent-p-s #2: {tool} ")
    assert said.endswith(f": by ann, {NOW:%Y-%m-%d %H:%M:%S} UTC: keep it")


def test_calls_that_waited_for_a_denied_one_are_listed_as_not_made_with_why() -> None:
    schedule = begun(step("call_1"), step("call_2", "call_1"), step("call_3"))
    run = schedule.run
    assert list(unmade_calls("agent-p-s", PlanView.read(plan_view(run, schedule)).steps)) == []
    schedule.settle("call_1", skipped("User denied approval", opens=False), NOW)
    [said] = unmade_calls("agent-p-s", PlanView.read(plan_view(run, schedule)).steps)
    assert said.startswith(f"agent-p-s #2: {run.plan.steps[1].tool} ")
    assert said.endswith(": 'call_1' was skipped: User denied approval")

"""What agents add to the views of their steps; without the feature, views show the steps all the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plansurvive.features.agents.in_views import IN_VIEWS
from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.child_state import AtWork
from plansurvive.plans.children.family import members
from plansurvive.plans.execution.messages import InsideAsked
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.in_views import InViews, Member, ViewSet
from plansurvive.plans.run import Run, run_of, text_of
from plansurvive.plans.views.markdown import details
from plansurvive.plans.views.page import inside_page
from plansurvive.plans.views.text import text
from plansurvive.plans.views.views import brief_step, brief_view, plan_view
from tests.plans.building import NOW, completed, failed, step
from tests.plans.building import run_of as made_of


def working() -> Schedule:
    """A plan with an agent at work on a step: one of two tasks is done, and a call awaits approval."""
    run = made_of(step("research", tool="agent", args={"objective": "Do it."}), step("other"))
    run.views = ViewSet([IN_VIEWS])
    schedule = Schedule(run)
    schedule.begin(NOW)
    schedule.start("research", NOW)
    state = run.steps["research"]
    state.calls, state.parts = 1, {"children": AtWork(tasks=["Find it", "Write it"], done=1, asks=["call_2"])}
    return schedule


def test_every_view_of_an_agents_step_has_its_tasks_and_what_it_asks() -> None:
    schedule = working()
    run = schedule.run
    tasks = [{"objective": "Find it", "status": "done"}, {"objective": "Write it", "status": "current"}]
    asks = {"agentId": "agent-p-research", "stepIds": ["call_2"]}
    for views in (plan_view(run, schedule)["steps"], brief_view(run)["steps"]):
        assert [(each.get("tasks"), each.get("agentAsks")) for each in views] == [(tasks, asks), (None, None)]
    alone = inside_page(run, InsideAsked(step_id="research"), brief_step)["step"]
    assert (alone["tasks"], alone["agentAsks"]) == (tasks, asks)
    assert text(run, detailed=True).split("\n")[-5:-1] == [
        "      [✓] Find it",
        "      [>] Write it",
        "      Agent: plan show agent-p-research",
        "      Asks: plan approve p research/call_2   or: plan deny p research/call_2 --comment WHY",
    ]
    assert "running · 1/2 Write it\n" in details(run, schedule)
    assert list(members(run)) == [Member("agent-p-research", "research.")]


def test_an_agent_that_has_ended_asks_nothing() -> None:
    schedule = working()
    schedule.settle("research", failed(), NOW + timedelta(seconds=1))
    assert "agentAsks" not in brief_view(schedule.run)["steps"][0]


@pytest.mark.parametrize("is_ok", [True, False])
def test_an_agent_counts_its_calls_and_is_none_itself(is_ok: bool) -> None:
    schedule = working()
    run = schedule.run
    made = PastCall(tool="note", args={}, result="done", time=NOW, agent="agent-p-research", number=1)
    run.steps["research"].past = [made, made.model_copy(update={"number": 2})]
    schedule.settle("research", completed() if is_ok else failed(), NOW)
    assert "      Tools: note (2 calls)" in text(run).splitlines()


def test_without_the_feature_its_steps_are_shown_as_any_others() -> None:
    run = working().run
    bare = run_of(text_of(run))
    assert brief_view(bare)["steps"][0].keys() == brief_view(run)["steps"][0].keys() - {"tasks", "agentAsks"}
    assert "Find it" not in text(bare, detailed=True)
    assert list(members(bare)) == []


def test_features_are_asked_in_their_order_and_only_at_the_seams_that_they_fill() -> None:
    run = made_of(step("a"))
    run.views = ViewSet([InViews("one"), *(_says(name) for name in ("two", "three"))])
    assert brief_view(run)["steps"][0]["from"] == "three"
    rows = [row.strip() for row in text(run, detailed=True).split("\n")]
    assert [row for row in rows if row.endswith(": p, a")] == ["two: p, a", "three: p, a"]


def _says(name: str) -> InViews:
    return InViews(
        name,
        fields=lambda *_: {"from": name},
        details=lambda plan_id, step, _: [f"{name}: {plan_id}, {step.id}"],
    )


def test_what_features_add_to_views_takes_no_part_in_comparing_and_copying_runs() -> None:
    run = working().run
    assert run_of(text_of(run)) == run
    assert isinstance(copy := run.model_copy(deep=True), Run)
    assert copy.views is run.views

"""Replays of plans that an LLM wrote: the plan that it would write now, after the same feedback, and its agents."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from plansurvive.apps.evaluation.replay import replay
from plansurvive.client import runs
from plansurvive.runtime.settings import Settings
from tests.apps.evaluation.recorded_runs import FIRST, LATER, WORKS, lab, says
from tests.kit.driving import work

FEEDBACK = "Also write three, please."


def _plan(*names: str) -> dict[str, object]:
    return {"title": "Write", "steps": [work(name) for name in names]}


async def test_a_plan_is_written_anew_with_the_feedback_of_then_and_nothing_is_run(
    temporal_client: Client, settings: Settings
) -> None:
    story = [
        says(_plan("one", "two", "three"), request=FEEDBACK),
        says(_plan("one", "two"), "Generate the plan"),
        says(_plan("one", "three"), request=FEEDBACK, model="other"),
        says(_plan("one"), "Generate the plan", model="other"),
    ]
    async with lab(temporal_client, settings, story) as here:
        started = await here.drafted("Write one and two")
        await runs.regenerate(temporal_client, started.id, FEEDBACK, by="ann")
        await runs.begin(temporal_client, started.id)
        view = await started.ended()
        assert len(view["steps"]) == 3
        here.forget()
        found = await replay(temporal_client, started.id)
        again = await replay(temporal_client, started.id, here.asking())
        other = await replay(temporal_client, started.id, here.asking("other"))
        assert here.written == []
    assert found.identical, found
    assert again.identical, again
    assert found.was.requests == 2
    told = other.runs[0].anew
    assert told is not None
    assert told.differs == ["answers", "tokens", "plan"]
    assert told.plan is not None
    assert [(each.step_id, each.kind) for each in told.plan.steps] == [("two", "removed")]
    assert (told.changes[-1].was, told.changes[-1].now) == ("3 steps: 3 work", "2 steps: 2 work")


@pytest.mark.slow
async def test_the_agents_of_a_plans_steps_are_replayed_and_its_recoveries_are_asked_again(
    temporal_client: Client, settings: Settings
) -> None:
    recovers = "Suggest one of"
    story = [
        says(WORKS, FIRST),
        says({"answer": "Both are written."}, LATER),
        says({"action": "skip", "reason": "it is not needed"}, recovers),
        says({"action": "abort", "reason": "it is hopeless"}, recovers, "other"),
        says(WORKS, FIRST, "other"),
        says({"answer": "Both are written."}, LATER, "other"),
    ]
    steps = [
        {"id": "helper", "tool": "agent", "args": {"objective": "Write one and two"}},
        {"id": "refused", "tool": "refuse", "args": {"code": "NO"}, "onFailure": "ask_llm"},
    ]
    async with lab(temporal_client, settings, story) as here:
        started = await here.plans.start(steps)
        await started.ended()
        here.forget()
        found = await replay(temporal_client, started.id)
        other = await replay(temporal_client, started.id, here.asking("other"))
        assert here.written == []
    assert found.identical, found
    name = started.id.removeprefix("plan-")
    assert [(each.kind, each.parent) for each in found.runs] == [("plan", ""), ("agent", name)]
    plan, agent = other.runs
    assert plan.anew is not None
    [answer] = [each for each in plan.anew.changes if each.what == "answers"]
    assert (answer.was or "").startswith('{"action": "skip"')
    assert (answer.now or "").startswith('{"action": "abort"')
    assert agent.identical

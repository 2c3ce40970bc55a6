"""Replays of plans that an LLM wrote: the plan that it would write now, after the same feedback, and its agents."""

from __future__ import annotations

from temporalio.client import Client

from client import runs
from runtime.settings import Settings
from tests.client.evaluation.recorded_runs import lab, says
from tests.driving import work

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
        found = await runs.replay(temporal_client, started.id)
        again = await runs.replay(temporal_client, started.id, here.asking())
        other = await runs.replay(temporal_client, started.id, here.asking("other"))
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

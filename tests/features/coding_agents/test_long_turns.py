"""What a long turn leaves in histories, which the server bounds: reports, tasks, commands and permissions."""

from __future__ import annotations

import pytest
from temporalio.api.enums.v1 import EventType

from plansurvive.features.coding_agents.in_workflow import FULL_EVENTS
from plansurvive.features.coding_agents.session import report_pause
from plansurvive.features.coding_agents.terminals import TERMINALS
from tests.features.coding_agents.scene import Scene, agent_of, code
from tests.kit.driving import Plans, step
from tests.kit.waiting import until

pytestmark = pytest.mark.uses("agents", "children")
AGENTS_EVENTS, PLANS_EVENTS = 12, 6
"""Of one report, in the histories of the agent and of its plan."""


def reports_of(seconds: float) -> int:
    """How many reports a turn of this length makes at most."""
    elapsed, count = 0.0, 0
    while (elapsed := elapsed + report_pause(elapsed)) <= seconds:
        count += 1
    return count


def test_the_reports_of_a_day_fit_into_a_history() -> None:
    assert reports_of(600) == 140
    assert reports_of(86_400) * AGENTS_EVENTS < FULL_EVENTS


async def test_a_report_leaves_few_events(idle: Plans, scene: Scene) -> None:
    go, count = idle.workspace / "go", 10
    scene.script([{"until": str(go)}])
    call = {"kind": "search", "title": "rg", "began": "2026-01-01T00:00:00Z"}
    async with scene.worker():
        plan = await idle.start([code()])
        await until(lambda: scene.prompts, "the agent works")
        before = len(await plan.events()), len(await agent_of(plan).events())
        for _ in range(count):
            await agent_of(plan).handle.execute_update("coding_progress", {"calls": [call]})
        await plan.until(lambda view: len(view["step_tool_history"].get("0", [])) == count, "the plan knows them")
        after = len(await plan.events()), len(await agent_of(plan).events())
        go.write_text("")
        await plan.ended()
    assert after[0] - before[0] <= count * PLANS_EVENTS + 10
    assert after[1] - before[1] <= count * AGENTS_EVENTS + 10


async def test_lists_of_tasks_are_reported_together(idle: Plans, scene: Scene) -> None:
    scene.script([{"plan": [[f"task {number}", "pending"]]} for number in range(30)])
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.ended()
        events = await agent_of(plan).events()
    kind = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    signals = [each.workflow_execution_signaled_event_attributes for each in events if each.event_type == kind]
    assert len([each for each in signals if each.signal_name == "coding_tasks"]) < 5
    assert "task 29" in str(step(view, "code"))


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_turn_that_fills_the_history_is_continued_in_the_next_run_of_the_workflow(
    idle: Plans, scene: Scene
) -> None:
    limit, commands = 120, 10
    scene.script([{"run": "echo {unique} >> ran.txt"} for _ in range(commands)], continues=True)
    async with scene.worker():
        plan = await idle.start([code()], {"approveAll": True, "historyLimit": limit})
        view = await plan.ended()
        sizes = [len(history.events) for history in await agent_of(plan).histories()]
    assert view["status"] == "completed", view["log"]
    assert len(sizes) > 1
    assert max(sizes) < limit + 100
    assert len(scene.prompts) > 1
    assert scene.prompts == ["Fix the test.", *["Continue the interrupted request."] * (len(scene.prompts) - 1)]
    assert len(scene.log("session/new")) == 1
    ran = (idle.workspace / "ran.txt").read_text().split()
    assert len(set(ran)) == len(ran) == commands


@pytest.mark.slow
@pytest.mark.in_turn
async def test_more_questions_at_a_time_than_the_server_takes_are_asked_one_after_the_other(
    idle: Plans, scene: Scene
) -> None:
    count = 14
    scene.script([{"together": [{"ask": f"make {number}", "yes": [], "no": []} for number in range(count)]}])
    async with scene.worker():
        plan = await idle.start([code()])
        agent, decided = agent_of(plan), set[str]()
        while len(decided) < count:
            view = await agent.until(lambda view: {e["stepId"] for e in view["pending"]} - decided, "it asks")
            for item in view["pending"]:
                decided.add(item["stepId"])
                await agent.approve(item["stepId"], digest=item["digest"])
        view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    assert scene.chosen() == ["yes"] * count


async def test_an_agent_runs_a_few_commands_at_a_time(idle: Plans, scene: Scene) -> None:
    scene.script([{"run": "echo begun; sleep 1000", "shows": "begun", "leave": True} for _ in range(TERMINALS + 1)])
    async with scene.worker():
        view = await (await idle.start([code()], {"approveAll": True})).ended()
    text = step(view, "code")["result"]["value"]["text"]
    assert text.count("it runs: begun") == TERMINALS
    assert text.endswith(
        f"not run: {TERMINALS} commands are running, the most at a time; end one, or wait for one to end"
    )

"""agents.md: each conversation is shown every one that applies, once; and again after its session was cleared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client import runs as client_runs
from plansurvive.client.errors import PlanClosed
from plansurvive.client.verbs import resume
from tests.kit.driving import WAITS, Plans, Started, step, work
from tests.kit.waiting import until
from tests.workflows.agents import Agents, Serving, call, says, serving
from tests.workflows.transcripts import agent_of

pytestmark = pytest.mark.uses("agents")

ANSWER = says({"answer": "done", "confidence": "high"})


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def _guides(root: Path) -> None:
    """Three directories, each with guidance and a file."""
    for folder, text in (("", "ROOT rules"), ("src", "NESTED rules"), ("src/deep", "DEEP rules")):
        directory = root / folder
        directory.mkdir(exist_ok=True)
        (directory / "agents.md").write_text(text)
        (directory / "a.txt").write_text("text")


def _reads(path: str) -> dict[str, Any]:
    return says({"tool_calls": [call("read_file", path=path)]})


def _shown(agents: Agents) -> list[list[str]]:
    """By LLM request, the guidance in its system prompt, in order."""
    systems = [str(seen.body["messages"][0]["content"]) for seen in agents.llm.play.seen]
    texts = ("ROOT rules", "NESTED rules", "DEEP rules", "NEW rules")
    return [
        [each.split()[0] for each in sorted(texts, key=system.find) if system.count(each) == 1] for system in systems
    ]


@pytest.mark.crosses_runs
async def test_an_agent_is_shown_the_agents_md_that_a_step_of_its_plan_has_read_before(serve: Serving) -> None:
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "src/a.txt"}},
        {"id": "agent", "tool": "agent", "args": {"objective": "Read."}, "dependsOn": ["read"]},
        {"id": "again", "tool": "read_file", "args": {"path": "src/deep/a.txt"}, "dependsOn": ["agent"]},
    ]
    async with serve([_reads("src/deep/a.txt"), ANSWER]) as agents:
        _guides(agents.plans.workspace)
        view = await agents.plans.run(steps)
        assert _shown(agents) == [[], ["ROOT", "NESTED", "DEEP"]]
    assert view["status"] == "completed"
    # the plan's own session is its own as well: what the agent read, its steps have not
    assert [(each["path"], each["stepId"]) for each in view["agentsMd"]] == [
        ("agents.md", "read"), ("src/agents.md", "read"), ("src/deep/agents.md", "again"),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_two_agents_of_a_plan_are_each_shown_all_that_applies_and_a_resumed_one_not_twice(serve: Serving) -> None:
    both = says({"tool_calls": [call("read_file", path="src/a.txt"), call("work", name="one", **WAITS)]}, times=2)
    steps = [{"id": name, "tool": "agent", "args": {"objective": f"Read {name}."}} for name in ("agent", "other")]
    async with serve([both, _reads("src/deep/a.txt"), _reads("src/deep/a.txt"), ANSWER, ANSWER]) as agents:
        _guides(agents.plans.workspace)
        plan = await agents.plans.start(steps)
        await until(lambda: len(agents.plans.ledger) == 2, "both agents work")
        await plan.signal("interrupt")
        await agent_of(plan).until(lambda view: view["stopped"], "it is interrupted")
        agents.plans.go()
        await plan.ended()
        later = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
        assert (await later.ended())["status"] == "completed"
        shown = _shown(agents)
    assert sorted(shown) == sorted([[]] * 2 + [["ROOT", "NESTED"]] * 2 + [["ROOT", "NESTED", "DEEP"]] * 2)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.crosses_runs
async def test_after_its_session_is_cleared_an_agent_is_shown_the_present_agents_md_with_its_next_read(
    serve: Serving,
) -> None:
    story = [
        _reads("src/a.txt"),
        says({"tool_calls": [call("work", name="one", **WAITS)]}),
        says({"tool_calls": [call("work", name="two")]}),
        _reads("src/a.txt"),
        ANSWER,
    ]
    async with serve(story) as agents:
        _guides(agents.plans.workspace)
        agent = await agents.start("Read.")
        await until(lambda: agents.plans.ledger, "it works")
        assert set(await client_runs.stamps(agent.client, agent.id)) == {"src/a.txt"}
        (agents.plans.workspace / "agents.md").write_text("NEW rules")
        for _ in range(2):  # once more is no different
            said = await client_runs.clear_session(agent.client, agent.id, "ann")
        assert said == "session cleared by ann"
        assert await client_runs.stamps(agent.client, agent.id) == {}
        agents.plans.go()
        view = await agent.ended()
        assert _shown(agents) == [[], ["ROOT", "NESTED"], [], [], ["NEW", "NESTED"]]
    assert [entry["text"] for entry in view["log"] if entry["kind"] == "cleared"] == [
        "session cleared by ann: 1 file stamp and 2 agents.md forgotten",
        "session cleared by ann: 0 file stamps and 0 agents.md forgotten",
    ]


@pytest.mark.crosses_runs
async def test_after_its_session_is_cleared_a_plan_edits_files_that_others_changed_and_reads_agents_md_anew(
    plans: Plans,
) -> None:
    _guides(plans.workspace)
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}},
        work("wait", "read", args=WAITS),
        {"id": "edit", "tool": "edit_file", "args": {"path": "a.txt", "oldText": "TEXT", "newText": "mine"},
         "dependsOn": ["wait"]},
        {"id": "again", "tool": "read_file", "args": {"path": "src/a.txt"}, "dependsOn": ["edit"]},
    ]  # fmt: skip
    plan = await plans.start(steps)
    await until(lambda: plans.ledger, "the file is read")
    (plans.workspace / "a.txt").write_text("TEXT of somebody else")
    await plan.signal("clear_session", {"by": "ann"})
    await plan.until_logged("cleared", "by ann")
    plans.go()
    view = await plan.ended()
    assert view["status"] == "completed", step(view, "edit")
    assert (plans.workspace / "a.txt").read_text() == "mine of somebody else"
    assert [each["path"] for each in view["agentsMd"]] == ["agents.md", "src/agents.md"]


@pytest.mark.modes("plain")
async def test_the_session_of_an_ended_run_is_not_cleared(plans: Plans) -> None:
    plan = await plans.start([work("one")])
    await plan.ended()
    with pytest.raises(PlanClosed, match="accepts no more messages"):
        await client_runs.clear_session(plan.client, plan.id, "ann")

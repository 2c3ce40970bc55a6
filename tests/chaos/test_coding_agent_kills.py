"""kill -9 of the worker, of the agent and of both, while a coding agent works and while it waits for a person."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import KILLS, Chaos
from tests.features.coding_agents.scene import PROGRAM, Scene, agent_of, asked, code
from tests.kit.driving import step
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.uses("agents", "children", "coding_agents")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the agent's script and home are."""
    (tmp_path / "agent" / "home").mkdir(parents=True)
    return tmp_path / "agent"


def scene_of(chaos: Chaos, place: Path, *prompts: list[dict[str, Any]]) -> Scene:
    """The agent `scripted` of the worker, which does this."""
    script, file = place / "script.json", place / "agents.toml"
    script.write_text(json.dumps({"prompts": prompts}))
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(script)]
    read = json.dumps([str(PROGRAM), str(script)])
    file.write_text(
        f"[agents.scripted]\ncommand = {json.dumps(command)}\nhome = {json.dumps(str(place / 'home'))}\n"
        f'read = {read}\napprove = "never"\n'
    )
    file.chmod(0o600)
    chaos.worker.environ["PLANS_AGENTS"] = str(file)
    return Scene(chaos.plans.client, None, place)  # type: ignore[arg-type]


def kill_agents() -> None:
    """kill -9 of the processes of the scripted agent."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if str(PROGRAM).encode() in words and b"-S" in words:
            os.kill(int(entry.name), signal.SIGKILL)


@pytest.mark.sampled
async def test_the_request_is_sent_once_however_often_worker_and_agent_are_killed(chaos: Chaos, place: Path) -> None:
    go = chaos.plans.workspace / "go"
    work = [{"until": str(go)}, {"make": str(chaos.plans.workspace / "made.txt"), "content": "x"}, {"say": "done"}]
    scene = scene_of(chaos, place, work)
    await chaos.worker.up()
    plan = await chaos.plans.start([code()])
    for number in range(KILLS):
        await until(lambda number=number: len(scene.prompts) == number + 1, "the agent works")  # type: ignore[misc]
        if number % 2:
            kill_agents()
        if number != 1:
            chaos.worker.kill()
            await chaos.worker.up()
    await until(lambda: len(scene.prompts) == KILLS + 1, "the agent works again")
    go.write_text("")
    view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "done"
    assert scene.prompts == ["Fix the test.", *["Continue the interrupted request."] * KILLS]
    assert {each["sessionId"] for each in scene.log("session/prompt")} == {"session-1"}
    assert len(scene.log("session/new")) == 1


async def test_a_permission_asked_before_a_kill_is_asked_once_and_counts_after_it(chaos: Chaos, place: Path) -> None:
    ask = {"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}
    scene = scene_of(chaos, place, [ask])
    await chaos.worker.up()
    plan = await chaos.plans.start([code()])
    agent, item = await asked(plan)
    chaos.worker.kill()
    await agent_of(plan).approve(item["stepId"], digest=item["digest"])
    await chaos.worker.up()
    view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "ran"
    assert scene.chosen() == ["yes"]
    permissions = [each for each in (await agent.view())["steps"] if each["tool"] == "coding_agent.execute"]
    assert len(permissions) == 1

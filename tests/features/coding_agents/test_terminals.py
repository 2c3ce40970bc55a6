"""The terminals of a coding agent: steps of its workflow that call `run_command`, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.features.coding_agents.terminals import command_line, last_of
from tests.features.coding_agents.scene import Scene, agent_of, asked, code
from tests.kit.driving import Plans, step
from tests.kit.lacking import require_sandbox

pytestmark = pytest.mark.uses("agents", "children", "outputs", "policy")


def test_a_person_reads_the_line_that_runs() -> None:
    assert command_line("make -j2 test", None) == "make -j2 test"
    assert command_line("git", ["commit", "-m", "it's"]) == "git commit -m 'it'\"'\"'s'"


def test_output_is_cut_at_the_beginning_of_a_character() -> None:
    data = "äöü".encode()
    assert [last_of(data, limit) for limit in (6, 5, 2, 1, 0)] == [
        ("äöü", False), ("öü", True), ("ü", True), ("", True), ("", True),
    ]  # fmt: skip


async def test_a_terminal_is_a_command_that_a_person_allows_and_records_say_what_it_did(
    idle: Plans, scene: Scene
) -> None:
    command = "echo hello; echo x > made.txt; echo $WHO >&2; exit 3"
    scene.script(
        [{"run": command, "env": [{"name": "WHO", "value": "me"}]}, {"run": "rm", "args": ["-rf", "made.txt"]}]
    )
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        assert (item["stepId"], item["tool"]) == ("p1", "run_command")
        assert item["args"] == {"command": command, "timeout": 3600, "allowFailure": True, "env": {"WHO": "me"}}
        await runs.approve(scene.client, plan.id, Choice(step_id="code/p1", digest=item["digest"]))
        await agent.until(lambda view: [each["stepId"] for each in view["pending"]] == ["p2"], "it asks again")
        await agent.deny("p2", comment="keep it")
        view = await plan.ended()
        of_agent = await agent.view()
    said = step(view, "code")["result"]["value"]["text"]
    assert said == "3 None: hello\nme\nnot run: a person has denied this command: keep it"
    assert (idle.workspace / "made.txt").read_text() == "x\n"
    assert step(view, "code")["result"]["value"]["files"] == ["made.txt"]
    assert [each["tool"] for each in view["step_tool_history"]["0"]].count("run_command") == 1
    ran = step(of_agent, "p1")
    assert (ran["status"], ran["result"]["value"]["exitCode"]) == ("completed", 3)
    assert step(of_agent, "p2")["status"] == "skipped"


@pytest.mark.slow
async def test_commands_show_what_they_write_are_killed_and_end_with_the_turn(idle: Plans, scene: Scene) -> None:
    policy = scene.settings.state_dir / "policy.toml"
    policy.write_text(
        '[[rule]]\nname = "naps"\ntool = "run_command"\ncommand = ["echo *", "sleep *"]\ndecide = "allow"\n'
        '[[rule]]\nname = "no pushes"\ntool = "run_command"\ncommand = ["git push *"]\ndecide = "deny"\n'
    )
    policy.chmod(0o600)
    napping = {"run": "echo begun; sleep 1000", "shows": "begun"}
    scene.script([{**napping, "kill": True}, {"run": "git push origin"}, {**napping, "leave": True}])
    async with scene.worker():
        plan = await idle.start([code()])
        view = await plan.ended()
        of_agent = await agent_of(plan).view()
    killed, pushed, left = (step(of_agent, name) for name in ("p1", "p2", "p3"))
    text = step(view, "code")["result"]["value"]["text"]
    assert text.startswith("None SIGKILL: begun\n\n[CANCELLED: ")
    assert "None SIGKILL: \n[POLICY_DENIED: " in text
    assert text.endswith("it runs: begun\n")
    assert [each["result"]["code"] for each in (killed, pushed, left)] == ["CANCELLED", "POLICY_DENIED", "CANCELLED"]


async def test_a_command_that_is_allowed_later_runs_once_and_the_agent_is_told(idle: Plans, scene: Scene) -> None:
    scene.script([{"run": "echo x >> made.txt; echo done"}], [{"say": "I see"}], toml='approve = "never"\nhold = 0.2')
    async with scene.worker():
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        await agent.until(lambda view: step(view, "call_1")["status"] == "completed", "the turn has ended")
        await agent.approve(item["stepId"], digest=item["digest"])
        view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "I see"
    assert (idle.workspace / "made.txt").read_text() == "x\n"
    assert scene.prompts[1] == (
        "Continue the interrupted request.\n\nRun meanwhile: echo x >> made.txt; echo done. It ended with exit code 0."
        " The end of its output:\ndone\n"
    )


@pytest.mark.parametrize(("network", "has_network"), [('["api.example.org"]', False), ('["*"]', True)])
async def test_a_terminal_has_the_network_where_its_agent_has_all_of_it_and_never_its_proxy(
    network: str, has_network: bool, idle: Plans, scene: Scene
) -> None:
    require_sandbox("bwrap")
    here = {line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    shows = "sed -n 's/:.*//p' /proc/net/dev; echo proxy=$HTTPS_PROXY$https_proxy"
    scene.script([{"run": shows}], toml=f'approve = "never"\nnetwork = {network}')
    async with scene.worker(sandbox="bwrap"):
        plan = await idle.start([code()])
        _, item = await asked(plan)
        assert item["args"].get("network", False) is has_network  # who approves it sees that
        await runs.approve(scene.client, plan.id, Choice(step_id="code/p1", digest=item["digest"]))
        view = await plan.ended()
    said = step(view, "code")["result"]["value"]["text"].removeprefix("0 None: ").split()
    assert said == [*said[:-1], "proxy="]
    assert set(said[:-1]) == (here if has_network else {"lo"})

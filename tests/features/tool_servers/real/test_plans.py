"""Plans and an agent that use tool servers of package registries, through a worker. Nightly, as it needs registries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.runtime.settings import Settings
from tests.features.tool_servers.real.real import Name, real_server
from tests.features.tool_servers.real.test_real_servers import a_repository
from tests.features.tool_servers.scene import served_worker
from tests.kit.driving import Plans
from tests.kit.waiting import until
from tests.workflows.agents import Agents, call, says

pytestmark = pytest.mark.slow
SERVERS: tuple[Name, ...] = ("filesystem", "git", "sqlite", "time")


def write_toml(state_dir: Path, **more: dict[str, Any]) -> None:
    """Name the real servers in mcp.toml, as one would. `more`: further keys of a server."""
    rows = []
    for name in SERVERS:
        fields = real_server(name, **more.get(name, {})).model_dump(mode="json", by_alias=True, exclude_defaults=True)
        rows += [f"[servers.{name}]", *(f"{key} = {_toml(value)}" for key, value in fields.items())]
    file = state_dir / "mcp.toml"
    file.write_text("\n".join(rows) + "\n")
    file.chmod(0o600)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {json.dumps(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def plans(temporal_client: Client, queue: str, workspace: Path) -> Plans:
    """Plans in a workspace that is a repository."""
    a_repository(workspace)
    return Plans(temporal_client, queue, workspace, {})


async def test_a_plan_uses_the_tools_of_four_real_servers(plans: Plans, settings: Settings) -> None:
    root = str(plans.workspace)
    write_toml(settings.state_dir)
    steps = [
        {"id": "now", "tool": "time.get_current_time", "args": {"timezone": "Europe/Berlin"}},
        {"id": "log", "tool": "git.git_log", "args": {"repo_path": root}},
        {"id": "note", "tool": "filesystem.write_file", "args": {"path": f"{root}/note.txt", "content": "{{log}}"}},
        {"id": "table", "tool": "sqlite.create_table", "args": {"query": "CREATE TABLE t (name TEXT)"}},
        {"id": "row", "tool": "sqlite.write_query", "args": {"query": "INSERT INTO t VALUES ('ann')"},
         "dependsOn": ["table"]},
        {"id": "read", "tool": "sqlite.read_query", "args": {"query": "SELECT * FROM t"}, "dependsOn": ["row"]},
    ]  # fmt: skip
    async with served_worker(plans.client, settings) as served:
        await until(lambda: not served.unlisted, "all servers are listed")
        assert len(served.specs) > 20
        assert not served.troubles
        plan = await plans.start(steps, {"approveAll": True})
        view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    assert "first" in (plans.workspace / "note.txt").read_text()
    assert "ann" in json.dumps(view["steps"][-1]["result"]["value"])


async def test_bad_arguments_for_a_real_server_are_found_before_anything_runs(plans: Plans, settings: Settings) -> None:
    write_toml(settings.state_dir)
    async with served_worker(plans.client, settings):
        plan = await plans.start([{"id": "a", "tool": "time.get_current_time", "args": {"zone": "UTC"}}])
        with pytest.raises(WorkflowFailureError) as raised:
            await plan.handle.result()
    assert "needs 'timezone'" in str(raised.value.cause)


async def test_an_agent_uses_real_servers_and_asks_for_what_was_not_waived(plans: Plans, settings: Settings) -> None:
    root = str(plans.workspace)
    write_toml(settings.state_dir, git={"approval": {"git_log": "never"}})
    script = [
        says({"tool_calls": [call("git.git_log", repo_path=root)]}),
        says({"tool_calls": [call("filesystem.write_file", path=f"{root}/note.txt", content="seen")]}),
        says({"answer": "done"}),
    ]
    with ScriptedLlm(Script.of(script)) as llm:
        async with served_worker(plans.client, settings.with_flags(openai_base_url=llm.url, model="demo")):
            agent = await Agents(plans, llm).start("note the log")
            view = await agent.until(lambda view: bool(view["pending"]), "it asks")
            (asked,) = view["pending"]
            assert asked["tool"] == "filesystem.write_file"
            assert not (plans.workspace / "note.txt").exists()
            await agent.approve(asked["stepId"], digest=asked["digest"])
            await agent.ended()
        told = str(llm.play.seen[1].body["messages"][-1])
    assert "first" in told
    assert (plans.workspace / "note.txt").read_text() == "seen"

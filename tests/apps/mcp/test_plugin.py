"""The plugin for Claude Code and Codex: what it names exists, and what its skill tells an agent to do works.

After a change of the files, try also what is no part of the tests: `claude plugin validate`, `codex plugin add`, and
the published schemas, claude-code-plugin-manifest, claude-code-marketplace and codex-plugin-manifest of SchemaStore.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client as Agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from plansurvive.client.local_tools import known_tools
from scripts.release import current
from tests.apps.mcp.agents import agent_of, called, refused
from tests.test_imports import ROOT

MARKETPLACE = ROOT / ".claude-plugin" / "marketplace.json"
PLUGIN = ROOT / "plugins" / "plans"
SKILL = PLUGIN / "skills" / "plan" / "SKILL.md"


def read(path: Path) -> dict[str, Any]:
    """A file of JSON."""
    return dict(json.loads(path.read_text()))


def skill() -> tuple[dict[str, Any], str]:
    """What the skill says of itself, and what it says."""
    _, head, text = SKILL.read_text().split("---\n", 2)
    return yaml.safe_load(head), text


def example() -> dict[str, Any]:
    """The plan that the skill shows."""
    found = re.search(r"```json\n(.*?)```", skill()[1], re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_the_marketplace_leads_to_the_plugin_and_both_clients_are_told_the_same() -> None:
    (entry,) = read(MARKETPLACE)["plugins"]
    claude, codex = (read(PLUGIN / f".{client}-plugin" / "plugin.json") for client in ("claude", "codex"))
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert {name: claude[name] for name in entry.keys() & claude.keys()} == {
        name: entry[name] for name in entry.keys() & claude.keys()
    }
    assert {name: codex[name] for name in claude} == claude
    assert claude["version"] == current()
    assert (PLUGIN / codex["mcpServers"]).is_file()
    assert (PLUGIN / codex["skills"] / "plan").is_dir()


def test_the_skill_is_one_that_clients_load() -> None:
    head, text = skill()
    assert head.keys() == {"name", "description"}
    assert head["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", head["name"])
    assert 0 < len(head["description"]) <= 1024
    assert len(text.splitlines()) < 500


async def test_what_the_skill_names_is_there_and_its_plan_has_no_problem(host: Host) -> None:
    named = set(re.findall(r"`(plan_\w+)`", skill()[1]))
    async with agent_of(host) as agent:
        offered = {tool.name for tool in (await agent.list_tools()).tools}
        assert "write_plan" in {prompt.name for prompt in (await agent.list_prompts()).prompts}
        checked = await called(agent, "plan_check", plan=example())
    assert named
    assert named <= offered
    assert checked["problems"] == []
    assert "count" in [each["stepId"] for each in checked["asks"]]
    tools = set(re.findall(r"tool `(\w+)`|`(\w+)` (?:works|asks)|`(coding_agent)`", skill()[1]))
    assert {name for names in tools for name in names if name} <= known_tools(host.settings).keys()


@pytest.mark.slow
async def test_an_agent_with_the_plugin_hands_a_plan_over_and_the_plan_goes_on_without_it(
    environ: dict[str, str], host: Host, worker: Worker, workspace: Path, tmp_path: Path
) -> None:
    (server,) = read(PLUGIN / ".mcp.json")["mcpServers"].values()
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / server["command"]).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m plansurvive "$@"\n')
    (bin_ / server["command"]).chmod(0o755)
    environ |= {"PATH": f"{bin_}:{environ['PATH']}"}
    (workspace / "notes").mkdir()
    for name in ("a", "b"):
        (workspace / "notes" / f"{name}.md").write_text("one two three\n")
    command = StdioServerParameters(
        command=str(bin_ / server["command"]), args=server["args"], env=environ, cwd=workspace
    )
    async with Agent(stdio_client(command)) as agent:
        assert (await called(agent, "plan_check", plan=example()))["problems"] == []
        started = await called(agent, "plan_start", plan=example(), wait=20)
        name = started["planId"]
        where = json.dumps(await called(agent, "plan_pending", planId=name))
        assert f"plan pending {name}" in where
        assert (await refused(agent, "plan_approve", planId=name, stepId="count[*]", digest="0" * 64))[0] == "FORBIDDEN"
    host.may_approve = True  # a person's client, after the session has ended
    async with agent_of(host) as person:
        while not (shown := await called(person, "plan_show", planId=name, wait=20))["hasEnded"]:
            for item in (await called(person, "plan_pending", planId=name))["pending"]:
                await called(person, "plan_approve", planId=name, stepId=item["stepId"], digest=item["digest"])
    assert shown["status"] == "completed", shown
    assert (workspace / "words.txt").read_text() == "3 notes/a.md\n3 notes/b.md\n"

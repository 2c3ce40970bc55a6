"""Tools of servers on the command line: listed once, remembered, listed again when asked or when mcp.toml changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.client.cli.command import plan, written
from tests.features.tool_servers import scene
from tests.features.tool_servers.scene import tool

NESTED = {
    "type": "object", "required": ["edits"], "additionalProperties": False,
    "properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}}},
    "$defs": {"Edit": {"type": "object", "required": ["line"], "properties": {"line": {"type": "integer"}}}},
}  # fmt: skip
ROWS = {"type": "object", "properties": {"rows": {"type": "integer"}}, "additionalProperties": False}
TOOLS = (
    tool("note", "text", annotations={"destructiveHint": True}),
    {"name": "edit", "description": "Edits.\x1b[2J", "inputSchema": NESTED, "outputSchema": ROWS},
    {"name": "odd", "inputSchema": {"type": "object", "$ref": "https://example.org"}},
)


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """An environment without a Temporal server, with a tool server in mcp.toml."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    scene.written(state, tmp_path / "said.json", *TOOLS)
    root = str(Path(__file__).parents[3])
    return {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1", "PYTHONPATH": root,
        "PLANS_STATE_DIR": str(state), "PLANS_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip


def file(place: Path, *steps: dict[str, Any]) -> str:
    """A plan file of these steps."""
    return written(place / "plan.json", {"steps": list(steps)})


async def test_a_plan_is_checked_against_the_schemas_of_a_server_that_was_not_asked_before(
    offline: dict[str, str], tmp_path: Path
) -> None:
    wrong = {"id": "a", "tool": "notes.edit", "args": {"edits": [{"line": "one"}], "path": "x"}}
    uses = {"id": "b", "tool": "notes.note", "args": {"text": "{{a.row}}"}, "dependsOn": ["a"]}
    ended = await plan(offline, "check", file(tmp_path, wrong, uses))
    assert ended.code == 2
    assert "should be a whole number; it is 'one'" in ended.err
    assert "notes.edit has no argument 'path'; it takes edits" in ended.err
    assert "did you mean 'rows'?" in ended.err
    right = {"id": "a", "tool": "notes.edit", "args": {"edits": [{"line": 1}]}}
    ended = await plan(offline, "check", file(tmp_path, right, uses | {"args": {"text": "{{a.rows}}"}}))
    assert ended.code == 0, ended.err
    assert "Will ask (2)" in ended.out


@pytest.mark.slow
async def test_tools_of_servers_are_listed_with_those_of_this_machine(offline: dict[str, str], tmp_path: Path) -> None:
    found = {each["name"]: each for each in json.loads((await plan(offline, "tools", "--json")).out)}
    assert {"notes.note", "notes.edit", "read_file"} <= found.keys()
    assert found["notes.note"]["asksBecause"] == "server 'notes' says that it is destructive"
    scene.say(tmp_path / "said.json", tool("other", "text"))
    assert "notes.edit" in (await plan(offline, "tools")).out  # nobody asked the server again
    listed = (await plan(offline, "tools", "--refresh")).out
    assert "notes.other" in listed
    assert "notes.edit" not in listed
    one = (await plan(offline, "tools", "notes.other")).out
    assert "Its server 'notes' says:" in one
    assert "Approval: needed: it is a tool of server 'notes', and its effects are not known" in one


@pytest.mark.slow
async def test_a_change_of_mcp_toml_has_its_servers_asked_again(offline: dict[str, str], tmp_path: Path) -> None:
    await plan(offline, "tools")
    toml = 'approval = {edit = "never"}\ntools = ["edit"]'
    scene.written(tmp_path / "state", tmp_path / "said.json", *TOOLS, toml=toml)
    found = {each["name"]: each for each in json.loads((await plan(offline, "tools", "--json")).out)}
    assert "notes.note" not in found
    assert found["notes.edit"]["approval"] == "never"


async def test_the_servers_are_listed_with_their_state_and_what_is_left_out(
    offline: dict[str, str], tmp_path: Path
) -> None:
    ended = await plan(offline, "mcp", "servers")
    assert ended.code == 0
    assert "stdio" in ended.out
    assert "2 tools, 2 need approval" in " ".join(ended.out.split())
    assert "odd is left out: its schema refers to another document" in " ".join(ended.out.split())
    (tmp_path / "said.json").write_text("broken")
    ended = await plan(offline, "mcp", "servers", "--refresh", "--json")
    (server,) = json.loads(ended.out)
    assert ended.code == 1
    assert (server["state"], server["tools"]) == ("failed", ["notes.note", "notes.edit"])
    assert server["error"]


async def test_a_bad_mcp_toml_is_named_and_nothing_is_started(offline: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state" / "mcp.toml").write_text("[servers.x]\nurl = 1\n")
    ended = await plan(offline, "tools")
    assert ended.code == 2
    assert "mcp.toml" in ended.err


@pytest.mark.slow
async def test_a_listing_that_cannot_be_read_is_as_good_as_none(offline: dict[str, str], tmp_path: Path) -> None:
    await plan(offline, "tools")
    (tmp_path / "state" / "tool-servers" / "notes.json").write_text('{"server": 1}')
    assert "notes.note" in (await plan(offline, "tools")).out

"""Saved templates as tools: what an agent sees of them, what their plans may, and what is answered."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp.types import EmbeddedResource, ImageContent, TextContent, TextResourceContents
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.server import build
from plansurvive.apps.mcp.template_tools.contents import MAX_BLOCKS, contents
from plansurvive.apps.mcp.template_tools.offers import tool_name
from plansurvive.features.templates.find import project_store

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAITS = [{"id": "a", "tool": "sleep", "args": {"seconds": 0}}]
DELETES = [{"id": "gone", "tool": "delete_file", "requiresApproval": False, "args": {"path": "old.txt"}}]


def saved(host: Host, name: str, steps: Any = None, **plan: Any) -> str:
    """Save a template of the host's workspace; returns NAME@HASH."""
    text = json.dumps({"steps": steps or WAITS, **plan})
    assert host.settings.workspace is not None
    version, _ = project_store(host.settings.workspace).save(name, text, "what it is for")
    host.templates = (*host.templates, name)
    return f"{name}@{version}"


async def test_a_template_is_a_tool_with_its_inputs_and_answers_with_its_outputs(host: Host, worker: Worker) -> None:
    inputs = {
        "name": {"type": "string", "description": "Whom to greet."},
        "loud": {"type": "boolean", "default": False},
    }
    saved(host, "greet", title="Greet", inputs=inputs, outputs={"text": "join(' ', ['Hello', inputs.name])"})
    async with McpClient(build(host)) as agent:
        tool = next(each for each in (await agent.list_tools()).tools if each.name == "greet")
        assert tool.input_schema == {
            "type": "object", "required": ["name"], "additionalProperties": False,
            "properties": inputs,
        }  # fmt: skip
        assert tool.description
        assert tool.description.startswith("what it is for")
        found = await agent.call_tool("greet", {"name": "Ann"})
        wrong = await agent.call_tool("greet", {"name": "Ann", "requiresApproval": False})
        missing = await agent.call_tool("greet", {})
    assert not found.is_error, found
    assert (found.structured_content or {})["outputs"] == {"text": "Hello Ann"}
    assert (wrong.is_error, missing.is_error) == (True, True)


async def test_an_output_named_content_is_shown_as_it_is(host: Host, worker: Worker, workspace: Path) -> None:
    steps = [
        {"id": "write", "tool": "write_file", "args": {"path": "out/report.md", "content": "# Report"}},
        {"id": "end", "tool": "sleep", "args": {"seconds": 0}, "dependsOn": ["write"]},
    ]
    (workspace / "notes.txt").write_text("of somebody else")
    blocks = [
        {"type": "text", "text": "A picture:"},
        {"type": "image", "data": base64.b64encode(PICTURE).decode(), "mimeType": "image/png"},
        {"type": "file", "path": "out/report.md"},
        {"type": "file", "path": "notes.txt"},
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"},
    ]
    saved(host, "report", steps, outputs={"content": f"`{json.dumps(blocks)}`"})
    async with McpClient(build(host)) as agent:
        found = await agent.call_tool("report", {})
    text, picture, file, foreign, link = found.content
    assert isinstance(text, TextContent)
    assert text.text == "A picture:"
    assert isinstance(picture, ImageContent)
    assert base64.b64decode(picture.data) == PICTURE
    assert isinstance(file, EmbeddedResource)
    assert isinstance(file.resource, TextResourceContents)
    assert (file.resource.text, file.resource.mime_type) == ("# Report", "text/markdown")
    assert isinstance(foreign, TextContent)
    assert "not a file that this plan wrote" in foreign.text
    assert isinstance(link, TextContent), "a link to this machine's files is told as data"


async def test_a_plan_that_fails_is_an_error_that_says_why(host: Host, worker: Worker) -> None:
    saved(host, "fails", [{"id": "read", "tool": "read_file", "args": {"path": "nothing.txt"}}])
    async with McpClient(build(host)) as agent:
        found = await agent.call_tool("fails", {})
    assert found.is_error
    assert isinstance(found.content[0], TextContent)
    assert "read: NOT_FOUND" in found.content[0].text


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("exact", "with_inputs", "is_asked"), [(False, False, True), (True, True, True), (True, False, False)]
)
async def test_a_waiver_counts_only_in_a_version_that_a_person_named_and_without_inputs_of_the_agent(
    host: Host, worker: Worker, workspace: Path, exact: bool, with_inputs: bool, is_asked: bool
) -> None:
    (workspace / "old.txt").write_text("x")
    name = saved(host, "clean", DELETES, inputs={"why": {"default": "order"}})
    if exact:
        host.templates = (name,)
    async with McpClient(build(host)) as agent:
        found = await agent.call_tool("clean", {"why": "I say so"} if with_inputs else {})
    assert (found.structured_content or {})["hasEnded"] == (not is_asked), found
    assert (workspace / "old.txt").exists() == is_asked


async def test_a_version_that_a_person_named_is_not_replaced_by_a_newer_one(host: Host, workspace: Path) -> None:
    name = saved(host, "release", title="old")
    saved(host, "release", title="new")
    saved(host, "plan_show", title="mine")
    host.templates = (name, "all")
    async with McpClient(build(host)) as agent:
        tools = {each.name: each.title for each in (await agent.list_tools()).tools}
    assert (tools["release"], tools["template_plan_show"]) == ("old", "mine")
    assert tools["plan_show"] != "mine"


def test_content_is_bounded_and_nothing_of_it_is_dropped_silently() -> None:
    def file(path: str) -> TextContent:
        return TextContent(text=path)

    many = contents(["x"] * (MAX_BLOCKS + 7), file)
    assert (len(many), many[-1]) == (MAX_BLOCKS + 1, TextContent(text="… 7 further blocks"))
    large = contents([{"type": "image", "data": "A" * 5_000_000, "mimeType": "image/png"}, "after"], file)
    assert large == [TextContent(text="… further content is too large to be shown")]
    odd = contents([{"type": "image"}, {"type": "file", "path": 3}, None, "a\u202eb"], file)
    assert all(isinstance(each, TextContent) for each in odd)
    assert "\u202e" not in str(odd)
    assert tool_name("plan_start") == "template_plan_start"

"""Plans with tools of an MCP server that change while the plans run, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from plansurvive.runtime.settings import Settings
from tests.features.tool_servers.scene import say, tool, written
from tests.kit.driving import Plans, Started, work

Scenario = Callable[[Plans], Awaitable[Started]]
SAID = "said.json"
NOTE, KEEP = tool("note", "text"), tool("keep", "text")
SHORT = {"historyLimit": 10}


def serve(settings: Settings, folder: Path) -> None:
    """Name the server in the mcp.toml of a worker whose plans have their workspaces in the folder."""
    settings.make_state_dir()
    written(settings.state_dir, folder / SAID, NOTE, KEEP, toml='approval = {keep = "never"}')


def _note(step_id: str, *needs: str, name: str = "notes.note") -> dict[str, Any]:
    return {"id": step_id, "tool": name, "dependsOn": list(needs), "args": {"text": step_id}}


def _changed(options: Mapping[str, Any] | None = None) -> Scenario:
    async def changed(plans: Plans) -> Started:
        """A call that is approved, and a tool that no longer takes its arguments when it is made."""
        steps = [_note("kept", name="notes.keep"), _note("a", "kept"), _note("b", "a"), work("end", "b")]
        steps[2]["requiresApproval"] = False
        started = await plans.start([*steps, _note("late", "end", name="notes.keep")], options)
        await _approved(started, "a", lambda: say(plans.workspace.parent / SAID, tool("note", "text", "to"), KEEP))
        view = await started.until(lambda view: _codes(view, "a") == ["TOOL_CHANGED"], "its arguments do not fit")
        assert view["steps"][1]["status"] == "failed"
        await started.ended()
        return started

    return changed


def _again(options: Mapping[str, Any] | None = None) -> Scenario:
    async def again(plans: Plans) -> Started:
        """A tool that changes between approval and call: it is asked about again, and so is a step that waived it."""
        steps = [_note("a"), _note("b", "a"), _note("c", "b"), work("end", "c")]
        steps[1]["requiresApproval"] = False
        started = await plans.start(steps, options)
        new = tool("note", "text", description="Notes it, and sends it away.")
        await _approved(started, "a", lambda: say(plans.workspace.parent / SAID, new, KEEP))
        await started.until_logged("void")
        for name in ("a", "b", "c"):
            await _approved(started, name)
        await started.ended()
        return started

    return again


async def _approved(started: Started, step_id: str, before: Callable[[], None] = lambda: None) -> None:
    """Approve the call that a step asks about, after something else has happened."""
    view = await started.until(lambda view: _asked(view, step_id), f"{step_id} asks")
    digest = _asked(view, step_id)
    before()
    await started.approve(step_id, digest=digest, by="ann")
    await started.until(lambda view: _asked(view, step_id) != digest, "the decision counts")


def _asked(view: dict[str, Any], step_id: str) -> str:
    return next((each["digest"] for each in view["pending"] if each["stepId"] == step_id), "")


def _codes(view: dict[str, Any], step_id: str) -> list[str]:
    return [each["result"]["code"] for each in view["steps"] if each["id"] == step_id and each.get("result")]


SERVER_TOOLS: dict[str, Scenario] = {
    "server-tool-changed": _again(),
    "server-tool-changed-continued": _again(SHORT),
    "server-tool-unfit": _changed(),
}

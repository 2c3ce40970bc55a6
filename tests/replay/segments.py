"""Plans whose quick steps run in segments, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.kit.driving import WAITS, Plans, Started, work

Scenario = Callable[[Plans], Awaitable[Started]]
LOOP = {"id": "each", "tool": "read_file", "args": {"path": "{{item}}"}, "forEach": {"items": ["in.txt"] * 12}}


def read(step_id: str, *needs: str, path: str = "in.txt", **more: Any) -> dict[str, Any]:
    """A step that reads a file."""
    return {"id": step_id, "tool": "read_file", "args": {"path": path}, "dependsOn": list(needs), **more}


def write(step_id: str, *needs: str, path: str, content: str) -> dict[str, Any]:
    """A step that writes a file, and asks nobody."""
    args = {"path": path, "content": content}
    return {"id": step_id, "tool": "write_file", "args": args, "dependsOn": list(needs), "requiresApproval": False}


def _run(*steps: dict[str, Any], options: Mapping[str, Any] | None = None, **plan: Any) -> Scenario:
    async def scenario(plans: Plans) -> Started:
        (plans.workspace / "in.txt").write_text("some text\n")
        started = await plans.start(list(steps), options, **plan)
        await started.ended()
        return started

    return scenario


async def edited(plans: Plans) -> Started:
    """An edit asks for a decision about a step that a segment would have run."""
    (plans.workspace / "in.txt").write_text("some text\n")
    steps = [read("a"), work("slow", "a", args=WAITS), write("w", "slow", path="out.txt", content="$a"), read("z", "w")]
    started = await plans.start(steps, express=True)
    await started.until_status("slow", "running")
    edit = {"op": "set", "stepId": "w", "path": "requiresApproval", "value": True}
    await started.handle.execute_update("edit", {"edits": [edit]})
    plans.go()
    await started.until_asked("w")
    await started.approve("w", digest=(await started.handle.query("call", {"stepId": "w"}))["digest"])
    await started.ended()
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan that is cancelled between its segments."""
    (plans.workspace / "in.txt").write_text("some text\n")
    started = await plans.start([read("a"), work("slow", "a", seconds=60.0), read("b", "slow")], express=True)
    await started.until_status("slow", "running")
    await started.handle.cancel()
    await started.ended()
    return started


SEGMENTS: Mapping[str, Scenario] = {
    "express": _run(
        read("a"), write("w", "a", path="out.txt", content="$a"), read("b", "w", path="out.txt"), LOOP, express=True
    ),
    "express-bounds": _run(*(read(f"s{at}", *([f"s{at - 1}"] if at else [])) for at in range(6)), express={"steps": 2}),
    "express-continued": _run(LOOP, read("end", "each"), options={"historyLimit": 12}, express={"steps": 3}),
    "express-failed": _run(read("a", path="none.txt"), read("b", "a"), read("c"), express=True),
    "express-together": _run(
        LOOP | {"repeatable": True},
        read("a"),
        read("b", "each", "a"),
        read("none", path="none.txt"),
        express=True,
        maxParallel=5,
    ),
    "express-edited": edited,
    "express-cancelled": cancelled,
}

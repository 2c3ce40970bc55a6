"""Plans and views of plans for tests of the graph, as plain data."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.model import Plan
from plansurvive.plans.views.models import PlanView


def step(name: str, needs: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    """A step of a view; `needs` is what it depends on. A block has `steps` or `switch` instead of a tool."""
    is_block = "steps" in fields or "switch" in fields
    depends = needs or []
    return (
        {"id": name, "dependsOn": depends, "needs": depends, "status": "pending"}
        | ({} if is_block else {"tool": "task"})
        | fields
    )


def written(name: str, needs: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    """A step of a plan file."""
    return {"id": name, "tool": "task", "dependsOn": needs or [], **fields}


def view(steps: list[dict[str, Any]], **fields: Any) -> PlanView:
    """The view of a running plan."""
    return PlanView.model_validate({"id": "p", "status": "running", "seq": 7, "steps": steps, **fields})


def plan(steps: list[dict[str, Any]]) -> Plan:
    """A plan as written."""
    return Plan.model_validate({"steps": steps})


def layered(levels: int, width: int) -> list[dict[str, Any]]:
    """Steps in levels; each needs two of the level before."""
    return [
        written(f"l{level}_{at}", [f"l{level - 1}_{(at + more) % width}" for more in (0, 1)] if level else [])
        for level in range(levels)
        for at in range(width)
    ]


MAPPED = [
    step("list", status="completed", tool="list_directory", description="List the pictures"),
    step(
        "resize", ["list"], status="running", tool="shell", forEach="list[*].name",
        inside={"kind": "each", "total": 4, "began": 3,
                "counts": {"completed": 1, "failed": 1, "awaiting approval": 1}},
        instances=[
            {"id": "resize[a.png]", "tool": "shell", "status": "completed", "item": "a.png, item 1 of 4"},
            {"id": "resize[b.png]", "tool": "shell", "status": "failed", "item": "b.png, item 2 of 4"},
            {"id": "resize[c.png]", "tool": "shell", "status": "ready", "awaiting": "approval"},
        ],
    ),
    step(
        "publish", ["resize"], steps=[written("upload"), written("verify", ["upload"])],
        catch=[{"codes": ["NOT_FOUND"], "steps": [written("say")]}],
    ),
    step("pick", ["list"], switch=[{"when": "list == 'x'", "steps": [written("a")]}, {"steps": [written("b")]}]),
]  # fmt: skip
"""A loop with a failed and a waiting item, a block with a `catch`, and a `switch`."""

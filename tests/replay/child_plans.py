"""The plans that run as steps whose histories are kept: those of the parent, and those of the child."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from plansurvive.client.verbs import resume
from tests.kit.driving import WAITS, Plans, Started, step, work
from tests.replay.agents import LOOKS

AGENT = {"id": "agent", "tool": "agent", "args": {"objective": "Look."}}
CHILD = {
    "title": "Child",
    "inputs": {"name": {"type": "string"}},
    "steps": [work("first", args={"value": "{{inputs.name}}"}), work("gate", "first", requiresApproval=True)],
    "outputs": {"name": "first"},
}
INLINE = {"id": "inline", "tool": "plan", "args": {"steps": [work("a"), work("b", "a")]}, "dependsOn": ["file"]}
FILE = {
    "id": "file", "tool": "plan", "args": {"file": "child.json", "inputs": {"name": "x"}}, "requiresApproval": True
}  # fmt: skip
LONG = {"steps": [work("first"), work("slow", "first", args=WAITS), work("last", "slow")]}


def child_of(plan: Started, step_id: str) -> Started:
    """The child plan of a step."""
    return Started(plan.client, f"{plan.id}-{step_id}")


async def approved(plans: Plans) -> Started:
    """A file whose content a person approves, with an approval inside; and inline steps."""
    (plans.workspace / "child.json").write_text(json.dumps(CHILD))
    plan = await plans.start([FILE, INLINE])
    await plan.until_asked("file")
    await plan.approve("file", by="ann")
    await child_of(plan, "file").until_asked("gate")
    await plan.until(lambda view: "pending" in step(view, "file").get("child", {}), "the question is told")
    await child_of(plan, "file").approve("gate", by="ann")
    await plan.ended()
    return plan


async def approved_child(plans: Plans) -> Started:
    """The child of `approved`."""
    return child_of(await approved(plans), "file")


async def _running(plans: Plans, **plan: Any) -> Started:
    started = await plans.start([{"id": "run", "tool": "plan", "args": LONG}], **plan)
    await child_of(started, "run").until_status("slow", "running")
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan that is cancelled while its child works."""
    plan = await _running(plans)
    await plan.handle.cancel()
    await plan.ended()
    return plan


async def resumed(plans: Plans) -> Started:
    """A plan that was paused and interrupted while its child worked, and then resumed."""
    plan = await _running(plans)
    await plan.signal("pause")
    await child_of(plan, "run").until(lambda view: view["status"] == "paused", "the child is paused")
    await plan.signal("unpause")
    await plan.signal("interrupt")
    await child_of(plan, "run").until(lambda view: view["stopped"], "the child is interrupted")
    plans.go()
    await plan.ended()
    later = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    await later.ended()
    return later


async def interrupted(plans: Plans) -> Started:
    """The first run of `resumed`."""
    later = await resumed(plans)
    return Started(later.client, later.id.removesuffix("-r2"))


async def budgeted(plans: Plans) -> Started:
    """Agents of two child plans under the budget of the plan."""
    steps = [{"id": name, "tool": "plan", "args": {"steps": [AGENT]}} for name in ("one", "two")]
    plan = await plans.start(steps, budget={"calls": 5, "ask": False})
    await plan.ended()
    return plan


async def budgeted_child(plans: Plans) -> Started:
    """A child of `budgeted`, which asks its parent."""
    return child_of(await budgeted(plans), "one")


CHILD_PLANS: dict[str, Callable[[Plans], Awaitable[Started]]] = {
    "child-plan": approved,
    "child-plan-own": approved_child,
    "child-plan-cancelled": cancelled,
    "child-plan-interrupted": interrupted,
    "child-plan-resumed": resumed,
    "child-plan-budget": budgeted,
    "child-plan-own-budget": budgeted_child,
}
TALKS = {"child-plan-budget": LOOKS, "child-plan-own-budget": LOOKS}

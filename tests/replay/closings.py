"""Scenarios of plans that are closed: rolled back, run their `finally`, cancelled once and twice, undone afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from plansurvive.client import runs
from plansurvive.plans.run import Options
from tests.kit.driving import WAITS, Plans, Started, work

BREAKS = {"id": "breaks", "tool": "refuse", "args": {"code": "BROKEN"}, "dependsOn": ["b"]}
UNDO = {"tool": "append", "args": {"text": "undo {{value}}"}}
TWO = {"steps": [{"id": "one", **UNDO}, {"id": "two", **UNDO, "dependsOn": ["one"]}]}
STEPS: list[dict[str, Any]] = [work("a", undo=UNDO), work("b", "a", undo=TWO)]
LAST: dict[str, Any] = {"finally": [work("tell", args={"name": "{{status}}"}), work("then", "tell")]}


async def rollback(plans: Plans) -> Started:
    """A plan that fails, is rolled back and runs its `finally`, with continue-as-new in between."""
    started = await plans.start([*STEPS, BREAKS], {"historyLimit": 10}, rollback=True, **LAST)
    await started.ended()
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan that is cancelled, and rolls back before it ends."""
    started = await plans.start([*STEPS, work("slow", "b", args=WAITS)], rollback=True, **LAST)
    await started.until_status("slow", "running")
    await started.handle.cancel()
    await started.ended()
    return started


async def abandoned(plans: Plans) -> Started:
    """A plan whose undo awaits approval when it is cancelled once more."""
    signed = work("a", undo={"tool": "sign", "args": {"text": "{{value}}"}})
    started = await plans.start([signed, work("slow", "a", args=WAITS)], rollback=True, **LAST)
    await started.until_status("slow", "running")
    await started.handle.cancel()
    await started.until(lambda view: view["pending"], "the undo asks")
    await started.signal("abandon", {})
    await started.ended()
    return started


async def finally_cancelled(plans: Plans) -> Started:
    """A plan that completes, and is cancelled while its `finally` runs."""
    last: dict[str, Any] = {"finally": [work("slow", args=WAITS), work("then", "slow")]}
    started = await plans.start([work("a")], **last)
    await started.until(lambda view: any(each["id"] == "finally.slow" for each in view["steps"]), "finally has begun")
    await started.until_status("finally.slow", "running")
    await started.handle.cancel()
    await started.until_logged("closing", "cancelled while")
    plans.go()
    await started.ended()
    return started


async def timed_out(plans: Plans) -> Started:
    """A plan whose deadline passes while it runs, after continue-as-new, and which is rolled back then."""
    steps = [*STEPS, work("slow", "b", args=WAITS)]
    started = await plans.start(steps, {"historyLimit": 10}, rollback=True, timeout=3.0, **LAST)
    await started.ended()
    return started


async def deadline_moved(plans: Plans) -> Started:
    """A plan that was started with a deadline and is given a later one, which its memo has then."""
    plan = {"title": "Moved", "steps": [work("ask", requiresApproval=True)]}
    options = Options(workspace=str(plans.workspace), timeout=300.0)
    begun = await runs.start(plans.client, plan, options=options, queue=plans.queue)
    started = Started(plans.client, begun.workflow_id)
    await started.until(lambda view: view.get("deadline"), "it has begun")
    await started.handle.execute_update("edit", {"edits": [{"op": "set", "path": "timeout", "value": 600.0}]})
    await started.deny("ask")
    await started.ended()
    return started


CLOSINGS: Mapping[str, Callable[[Plans], Awaitable[Started]]] = MappingProxyType({
    "rollback": rollback,
    "rollback-cancelled": cancelled,
    "rollback-abandoned": abandoned,
    "finally-cancelled": finally_cancelled,
    "deadline": timed_out,
    "deadline-moved": deadline_moved,
})  # fmt: skip

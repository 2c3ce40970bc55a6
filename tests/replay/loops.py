"""Scenarios of loops, repetitions and alternatives: across runs, resumed, and edited while they run."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from temporalio.service import RPCError

from plansurvive.client.verbs import resume
from plansurvive.plans.child_ids import child_id
from tests.kit.driving import WAITS, Plans, Started, View, step, work
from tests.kit.waiting import until

Data = dict[str, Any]
BAD: Data = {"id": "bad", "tool": "refuse", "args": {"code": "{{row}}"}, "when": "row != 'good'"}
INNER: Data = {
    "id": "rows", "forEach": {"items": ["good", "KNOWN", "OTHER"], "as": "row", "key": "@", "tolerate": "40%"},
    "steps": [BAD], "catch": [{"codes": ["KNOWN"], "steps": [work("caught", args={"name": "{{error.code}}"})]}],
    "dependsOn": ["gate"],
}  # fmt: skip
LOOP: Data = {
    "id": "each", "forEach": {"items": "list", "key": "name", "maxParallel": 2},
    "steps": [work("gate", args={"name": "{{key}}"}, requiresApproval=True), INNER],
}  # fmt: skip
LIST: Data = work("list", args={"value": [{"name": "a/b"}, {"name": "c d"}, {"name": "e"}]})


def _plain(*items: str, **more: Any) -> Data:
    return work("each", args={"name": "{{item}}", **more}) | {"forEach": {"items": list(items), "key": "@"}}


async def loops(plans: Plans) -> Started:
    """Loops in a loop: approvals by item and by pattern, failures that are caught and tolerated."""
    return await _approved(await plans.start([LIST, LOOP, work("end", "each")]))


async def continued(plans: Plans) -> Started:
    """The same with continue-as-new in between."""
    return await _approved(await plans.start([LIST, LOOP, work("end", "each")], {"historyLimit": 12}))


async def _approved(plan: Started) -> Started:
    await plan.until(lambda view: len(view["pending"]) == 3, "three items ask")
    await plan.approve("each[c%20d].gate", by="ann")
    await plan.approve("each[*].gate", by="bob")
    await plan.ended()
    return plan


async def repeat_switch(plans: Plans) -> Started:
    """A repetition with a delay, alternatives, and a block that fails and has a `finally` with a loop in it."""
    poll = work("poll", args={"value": "{{round}}"}) | {"repeat": {"until": "@ == '3'", "limit": 5, "delay": 0.1}}
    cases = [{"when": "poll == '2'", "steps": [work("no")]}, {"steps": [work("yes", args={"value": "{{poll}}"})]}]
    choice = {"id": "choice", "switch": cases, "dependsOn": ["poll"]}
    fails = {"id": "fails", "tool": "refuse", "args": {"code": "BROKEN"}}
    last = [_plain("p", "q"), work("clean", "each", args={"name": "{{status}}"})]
    block = {"id": "block", "steps": [fails, work("after", "fails")], "finally": last}
    plan = await plans.start([poll, choice, block, work("end", "choice", args={"value": "$choice"})])
    await plan.ended()
    return plan


async def list_items(plans: Plans) -> Started:
    """A list that is stored outside history, from which an activity takes the items."""
    rows = [{"name": f"item {number}", "pad": "x" * 3_000} for number in range(4)]
    (plans.workspace / "list.json").write_text(json.dumps(rows))
    read = {"id": "list", "tool": "read_json", "args": {"path": "list.json"}}
    each = work("each", args={"name": "{{item}}"}) | {"forEach": {"items": "list[?name != 'item 2'].name", "key": "@"}}
    plan = await plans.start([read, each])
    await plan.ended()
    return plan


async def resumed(plans: Plans) -> Started:
    """A loop in which one item failed is resumed: what was done is not done again."""
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}, "dependsOn": ["first"]}
    first = work("first", args={"name": "first-{{item}}"})
    loop = {"id": "each", "forEach": {"items": ["a", "b", "c"], "key": "@"}, "steps": [first, read]}
    for name in "ac":
        (plans.workspace / f"{name}.txt").write_text(name)
    plan = await plans.start([loop, work("end", "each")])
    await plan.ended()
    (plans.workspace / "b.txt").write_text("b")
    again = Started(plan.client, (await resume.resume(plan.client, plan.id)).workflow_id)
    await again.ended()
    return again


def counts_inside(view: View) -> dict[str, int]:
    """How many steps inside the loop have which status; empty before it has begun."""
    counts: dict[str, int] = step(view, "each").get("inside", {}).get("counts", {})
    return counts


async def edited(plans: Plans) -> Started:
    """One item and the block of all items are edited while the loop runs."""
    slow = work("slow", args={**WAITS, "name": "slow-{{item}}"})
    last = work("last", "slow", args={"name": "last-{{item}}"})
    loop = {"id": "each", "forEach": {"items": ["a", "b", "c"], "key": "@", "maxParallel": 2}, "steps": [slow, last]}
    plan = await plans.start([loop])
    await plan.until(lambda view: counts_inside(view).get("running") == 2, "two items run")
    for name, text in (("each[a].last", "edited-a"), ("each.last", "all-{{item}}")):
        edits = [{"op": "set", "stepId": name, "path": "args.name", "value": text}]
        await plan.handle.execute_update("edit", {"edits": edits, "by": "ann"})
    plans.go()
    await plan.ended()
    return plan


def _child_of(plan: Started, batch: str) -> Started:
    return Started(plan.client, f"plan-{child_id(plan.id.removeprefix('plan-'), batch, 1)}")


async def batches(plans: Plans) -> Started:
    """A loop whose items run in child plans: one item fails and is tolerated, a person approves another."""
    work_item = work("work", args={"name": "{{item}}", "value": "{{index}}"}, requiresApproval=True)
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}, "dependsOn": ["work"]}
    rule = {"items": ["a", "b", "c"], "key": "@", "mode": "plans", "batch": 2, "maxParallel": 4, "tolerate": 1}
    for name in "ac":
        (plans.workspace / f"{name}.txt").write_text(name)
    plan = await plans.start([{"id": "each", "forEach": rule, "steps": [work_item, read]}, work("end", "each")])
    for batch, items in (("each[0..1]", "ab"), ("each[2..2]", "c")):
        child = _child_of(plan, batch)
        for item in items:
            await until(partial(_asks, child, f"each[{item}].work"), f"{item} waits for a person")
            await child.approve(f"each[{item}].work", by="ann")
    await plan.ended()
    return plan


async def batches_own(plans: Plans) -> Started:
    """A child plan of `batches`."""
    return _child_of(await batches(plans), "each[0..1]")


async def _asks(plan: Started, step_id: str) -> bool:
    try:
        return any(each["stepId"] == step_id for each in (await plan.view())["pending"])
    except RPCError:
        return False  # it has not begun


async def places(plans: Plans, options: Data | None = None) -> Started:
    """Items that awaited a person, or an event, take the places of their loop one after the other."""
    gate = work("gate", args={"name": "{{item}}"}, requiresApproval=True)
    wait = {"id": "wait", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["gate"]}
    rule = {"items": ["a", "b", "c"], "key": "@", "maxParallel": 1}
    plan = await plans.start(
        [{"id": "each", "forEach": rule, "steps": [gate, wait, work("last", "wait", args={"name": "{{item}}"})]}],
        options,
    )
    await plan.until(lambda view: len(view["pending"]) == 3, "three items ask")
    await plan.approve("each[*].gate", by="ann")
    await plan.until(lambda view: counts_inside(view).get("awaiting event") == 3, "three items wait for an event")
    await plan.signal("event", {"name": "go"})
    await plan.ended()
    return plan


async def places_continued(plans: Plans) -> Started:
    """The same with continue-as-new in between."""
    return await places(plans, {"historyLimit": 12})


LOOPS: Mapping[str, Callable[[Plans], Awaitable[Started]]] = MappingProxyType({
    "loops": loops,
    "loops-continued": continued,
    "repeat-switch": repeat_switch,
    "list-items": list_items,
    "loop-resumed": resumed,
    "loop-edited": edited,
    "loop-places": places,
    "loop-places-continued": places_continued,
    "batches": batches,
    "batches-own": batches_own,
})  # fmt: skip

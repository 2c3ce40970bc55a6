"""Loops whose items run in child plans (`mode: plans`): values, keys, failures, people, resume and rerun."""

from __future__ import annotations

import json
from typing import Any

import pytest
from temporalio.service import RPCError

from plansurvive.client.children.naming import located
from plansurvive.client.verbs import resume
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.editing.next_run import Replacement
from tests.kit.driving import WAITS, Plans, Started, step, work
from tests.kit.waiting import until

pytestmark = pytest.mark.uses("children")


def batched(items: Any, args: dict[str, Any] | None = None, **rule: Any) -> dict[str, Any]:
    """A loop of which each batch runs in a child plan."""
    each = {"items": items, "mode": "plans"} | rule
    return {"id": "each", "forEach": each, "tool": "work", "args": args or {"name": "{{item}}", "value": "{{item}}"}}


def entered(plans: Plans) -> list[str]:
    """Names of the items that were worked on, in order."""
    return sorted(line[1] for line in plans.ledger if line[0] == "start")


def child_of(plan: Started, batch: str) -> Started:
    """The child plan of a batch."""
    return Started(plan.client, f"plan-{child_id(plan.id.removeprefix('plan-'), batch, 1)}")


async def until_asked(plan: Started, path: str) -> Started:
    """The plan in which a step below is decided, once it waits for a person."""
    child = child_of(plan, path.split("/")[0])

    async def asks() -> bool:
        try:
            return path.split("/")[1] in str((await child.view())["pending"])
        except RPCError:
            return False  # it has not begun

    await until(asks, f"{path} waits")
    assert await located(plan.client, plan.id, path) == (child.id.removeprefix("plan-"), path.split("/")[1])
    return child


async def test_items_in_child_plans_have_their_keys_places_and_values_in_item_order(plans: Plans) -> None:
    (plans.workspace / "list.json").write_text(json.dumps([{"k": f"k{number}"} for number in range(7)]))
    steps = [
        {"id": "list", "tool": "read_json", "args": {"path": "list.json"}},
        work("other", args={"value": "seen"}),
        batched(
            "list",
            {"name": "{{item.k}}", "value": "{{item.k}} {{index}} {{key}} {{other}} {{inputs.word}}"},
            key="k",
            batch=3,
            maxParallel=4,
        )
        | {"when": "item.k != 'k4'"},
        {"id": "all", "tool": "write_file", "args": {"path": "all.json", "content": "{{each}}"}},
    ]
    plan = await plans.start(steps, {"inputs": {"word": "yes"}}, inputs={"word": {"type": "string"}})
    view = await plan.ended()
    assert view["status"] == "completed", view
    values = [None if number == 4 else f"k{number} {number} k{number} seen yes" for number in range(7)]
    assert json.loads((plans.workspace / "all.json").read_text()) == values
    assert view["steps"][2]["inside"]["counts"] == {"completed": 3}
    child = child_of(plan, "each[3..5]")
    assert [each["id"] for each in (await child.view())["steps"]] == ["other", "each"]


def reading(items: list[Any], **rule: Any) -> dict[str, Any]:
    """A loop whose items fail as long as their file is missing, before they write into the ledger."""
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}},
        {"id": "work", "tool": "work", "args": {"name": "{{item}}", "value": "$read"}, "dependsOn": ["read"]},
    ]
    return {
        "id": "each",
        "forEach": {"items": items, "key": "@", "mode": "plans"} | rule,
        "steps": steps,
        "output": "work",
    }


@pytest.mark.slow
@pytest.mark.in_turn
async def test_after_a_failure_only_the_failed_item_runs_in_the_resumed_plan(plans: Plans) -> None:
    names = [f"i{number}" for number in range(60)]
    for name in names:
        (plans.workspace / f"{name}.txt").write_text(name)
    (plans.workspace / "i33.txt").unlink()
    plan = await plans.start([reading(names, batch=12, maxParallel=50, tolerate=0)])
    view = await plan.ended()
    failed = step(view, "each")["result"]
    assert (view["status"], failed["code"]) == ("partial", "ITEMS_FAILED")
    assert failed["error"].startswith("1 of 60 items failed")
    done = entered(plans)
    assert "i33" not in done
    (plans.workspace / "i33.txt").write_text("mended")
    later = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    view = await later.ended()
    assert view["status"] == "completed", view
    assert step(view, "each")["result"]["value"] == [name if name != "i33" else "mended" for name in names]
    assert entered(plans) == sorted(names)
    assert set(done) < set(names)


@pytest.mark.slow
async def test_failures_are_tolerated_over_all_batches_and_their_values_are_null(plans: Plans) -> None:
    for name in "acdf":
        (plans.workspace / f"{name}.txt").write_text(name)
    view = await plans.run([reading(list("abcdef"), batch=2, tolerate=2)])
    assert (view["status"], step(view, "each")["result"]["value"]) == ("completed", ["a", None, "c", "d", None, "f"])
    view = await plans.run([reading(list("abcdef"), batch=2, tolerate=1)])
    assert step(view, "each")["result"]["error"].startswith("2 of 6 items failed")


@pytest.mark.slow
async def test_items_in_child_plans_are_approved_and_denied_by_their_path(plans: Plans) -> None:
    plan = await plans.start([batched(["a", "b", "c"], batch=2, tolerate=1) | {"requiresApproval": True}])
    first = await until_asked(plan, "each[0..1]/each[0]")
    await first.approve("each[0]", by="ann")
    await first.deny("each[1]", by="ann")
    last = await until_asked(plan, "each[2..2]/each[2]")
    await last.approve("each[2]", by="ann")
    view = await plan.ended()
    assert (view["status"], step(view, "each")["result"]["value"]) == ("partial", ["a", None, "c"])
    again = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    child = await until_asked(again, "each[0..1]/each[1]")
    await child.approve("each[1]", by="ann")
    view = await again.ended()
    assert (view["status"], step(view, "each")["result"]["value"]) == ("completed", ["a", "b", "c"])
    assert entered(plans) == ["a", "b", "c"]


@pytest.mark.slow
async def test_a_denial_in_a_child_plan_counts_towards_what_the_whole_loop_tolerates(plans: Plans) -> None:
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.json", "content": "{{each}}"}}
    plan = await plans.start([batched(["a", "b", "c"], batch=2) | {"requiresApproval": True}, end])
    first = await until_asked(plan, "each[0..1]/each[0]")
    await first.deny("each[0]", by="ann")
    await first.approve("each[1]", by="ann")
    last = await until_asked(plan, "each[2..2]/each[2]")
    await last.approve("each[2]", by="ann")
    view = await plan.ended()
    found = step(view, "each")["result"]
    assert (view["status"], found["code"], step(view, "end")["status"]) == ("partial", "ITEMS_DENIED", "blocked")
    assert "1 of 3 items were denied" in found["error"]
    again = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    child = await until_asked(again, "each[0..1]/each[0]")
    await child.approve("each[0]", by="ann")
    assert (await again.ended())["status"] == "completed"
    assert json.loads((plans.workspace / "end.json").read_text()) == ["a", "b", "c"]
    assert entered(plans) == ["a", "b", "c"], "each ran once"


@pytest.mark.slow
async def test_large_values_go_into_child_plans_and_come_back(plans: Plans) -> None:
    long = "x" * 300_000
    (plans.workspace / "long.txt").write_text(long)
    read = {"id": "long", "tool": "read_file", "args": {"path": "long.txt"}}
    many = {"id": "many", "forEach": ["long.txt"], "tool": "read_file", "args": {"path": "{{item}}"}}
    names = {"name": "{{item}}", "value": "{{item}}{{long}}{{many}}"}
    loop = batched(["a", "b", "c"], names, batch=2) | {"dependsOn": ["long", "many"]}
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.json", "content": "{{each}}"}}
    view = await plans.run([read, many, loop, end])
    assert view["status"] == "completed", view
    assert json.loads((plans.workspace / "end.json").read_text()) == [f'{name}{long}["{long}"]' for name in "abc"]


@pytest.mark.slow
async def test_a_rerun_with_another_list_keeps_the_batches_that_are_the_same(plans: Plans) -> None:
    loop = batched(["a", "b", "c", "d", "e"], key="@", batch=2)
    plan = await plans.start([loop])
    await plan.ended()
    items = ["a", "b", "c", "x", "e", "f"]
    change = Replacement(step_id="each", path="forEach.items", value=items)
    again = await resume.rerun(plans.client, plan.id, start_at="each", changes=[change])
    view = await Started(plans.client, again.workflow_id).ended()
    assert step(view, "each")["result"]["value"] == items
    assert entered(plans) == sorted("abcde" + "cx" + "ef")  # those in a batch that changed run again


@pytest.mark.slow
async def test_an_interrupted_loop_is_resumed_with_the_items_that_are_left(plans: Plans) -> None:
    loop = batched(list("abcdef"), {"name": "{{item}}", **WAITS}, batch=3, maxParallel=2)
    plan = await plans.start([loop])
    await until(lambda: len(entered(plans)) == 2, "two items are in progress")
    await plan.signal("interrupt")
    for place in ("each[0..2]", "each[3..5]"):
        await child_of(plan, place).until(lambda view: view["stopped"], "the child is interrupted")
    plans.go()
    view = await plan.ended()
    assert view["status"] == "cancelled"
    later = Started(plans.client, (await resume.resume(plans.client, plan.id)).workflow_id)
    view = await later.ended()
    assert (view["status"], entered(plans)) == ("completed", list("abcdef"))


@pytest.mark.slow
async def test_a_loop_inside_a_block_of_a_loop_may_run_in_child_plans(plans: Plans) -> None:
    inner = batched("row.cells", {"name": "{{row.n}}{{item}}", "value": "{{row.n}}{{item}}{{head}}"}, batch=1)
    block = {"id": "rows", "forEach": {"items": [{"n": 1, "cells": ["a", "b"]}, {"n": 2, "cells": []}], "as": "row"}}
    view = await plans.run([block | {"steps": [work("head"), inner | {"dependsOn": ["head"]}], "output": "each"}])
    assert (view["status"], step(view, "rows")["result"]["value"]) == ("completed", [["1ahead", "1bhead"], []])

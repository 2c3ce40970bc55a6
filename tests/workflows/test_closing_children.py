"""Rollback and `plan undo` reach into child plans: what their steps say with `undo` runs once, in reverse."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.rpc import ask_view
from plansurvive.client.runs import wait
from plansurvive.client.verbs.resume import resume
from plansurvive.features.files.verbs import compensate, compensations, undo_whole, would_undo
from plansurvive.plans.errors import Refused
from plansurvive.plans.views.models import PlanView
from tests.kit.driving import WAITS, Plans, Started, View, step, work
from tests.workflows.conftest import MakeWorker
from tests.workflows.test_closing import BREAKS, ends, undoable

pytestmark = pytest.mark.uses("children")


def child(step_id: str, *steps: dict[str, Any], needs: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """A step that runs a plan of these steps."""
    return {"id": step_id, "tool": "plan", "args": {"steps": [*steps]}, "dependsOn": needs or [], **more}


NESTED = [
    undoable("a"),
    child("sub", undoable("b"), child("deep", undoable("c", args={"name": "c"}), needs=["b"]), undoable("d", "deep"),
          needs=["a"]),
    undoable("e", "sub"),
]  # fmt: skip
ALL_UNDONE = ["undo e", "undo d", "undo c", "undo b", "undo a"]


def undo_status(view: View, name: str) -> str | None:
    """What became of a step's undo so far."""
    found: str | None = step(view, name).get("undo", {}).get("status")
    return found


async def until_undoing(plan: Started, name: str) -> Started:
    """The plan that undoes the child plan of step `sub`, once it undoes this step."""
    undoing = Started(plan.client, f"{plan.id}-sub-undo")
    await undoing.until(lambda view: undo_status(view, name) == "running", f"{name} is being undone")
    return undoing


@pytest.mark.crosses_runs
async def test_a_rollback_undoes_the_steps_of_child_plans_in_reverse_order_among_its_own(plans: Plans) -> None:
    plan = await plans.start([*NESTED, {**BREAKS, "dependsOn": ["e"]}], rollback=True)
    view = await plan.ended()
    assert ends(plans) == ["a", "b", "c", "d", "e", *ALL_UNDONE], view["log"]
    assert [undo_status(view, name) for name in ("e", "sub", "a")] == ["completed"] * 3
    assert view["status"] == "partial"
    shown = await ask_view(plan.client, plan.id, PlanView, "plan")
    assert {each.id: each.undo.status for each in shown.steps if each.undo} == dict.fromkeys(
        ("a", "sub", "e"), "completed"
    )
    of_child = await Started(plan.client, f"{plan.id}-sub-undo").view()
    assert [undo_status(of_child, name) for name in ("b", "deep", "d")] == ["completed"] * 3
    assert await compensations(plans.client, plan.id) == await compensations(plans.client, f"{plan.id}-sub") == []


async def test_undo_of_an_ended_plan_lists_counts_and_runs_the_undos_of_its_child_plans_once(plans: Plans) -> None:
    plan = await plans.start(NESTED)
    await plan.ended()
    shown = await would_undo(plans.client, plan.id, None)
    assert [call.step_id for call in shown.calls] == ["e", "sub/d", "sub/deep/c", "sub/b", "a"]
    assert [call.args for call in shown.calls][1] == {"text": "undo d"}
    done = await undo_whole(plans.client, plan.id, None, lambda started: wait(plans.client, started.plan_id))
    assert (len(done.calls), done.is_whole) == (5, True)
    assert ends(plans)[5:] == ALL_UNDONE
    assert await compensate(plans.client, plan.id) is None
    assert await compensate(plans.client, f"{plan.id}-sub") is None
    again = Started(plans.client, (await resume(plans.client, plan.id)).workflow_id)
    assert (await again.ended())["status"] == "completed"
    assert ends(plans)[10:] == ["a", "b", "c", "d", "e"]


async def test_a_step_of_a_child_plan_is_undone_by_its_path_alone_and_not_again_with_the_plan(plans: Plans) -> None:
    plan = await plans.start(NESTED)
    await plan.ended()
    with pytest.raises(Refused, match="has no step 'sun/d'"):
        await would_undo(plans.client, plan.id, "sun/d")
    for path, done in (("sub/deep/c", ["undo c"]), (None, ["undo e", "undo d", "undo b", "undo a"])):
        before = ends(plans)
        shown = await would_undo(plans.client, plan.id, path)
        undone = await undo_whole(plans.client, plan.id, path, lambda started: wait(plans.client, started.plan_id))
        assert ([call.step_id for call in shown.calls], shown.calls, undone.is_whole) == (
            [path] if path else ["e", "sub/d", "sub/b", "a"], undone.calls, True,
        )  # fmt: skip
        assert ends(plans)[len(before) :] == done


async def test_a_step_of_the_child_plans_of_all_items_is_undone_by_a_pattern(plans: Plans) -> None:
    kid = child("kid", undoable("b", args={"name": "b{{inputs.of}}"}))
    kid["args"]["inputs"] = {"of": "{{item}}"}
    plan = await plans.start([{"id": "each", "forEach": {"items": ["x", "y/z"], "key": "@"}, "steps": [kid]}])
    await plan.ended()
    done = await undo_whole(plans.client, plan.id, "each[*].kid/b", lambda started: wait(plans.client, started.plan_id))
    assert sorted(call.step_id for call in done.calls) == ["each[x].kid/b", "each[y/z].kid/b"]
    assert sorted(ends(plans)[2:]) == ["undo bx", "undo by/z"]


async def test_what_a_child_plan_has_undone_itself_is_not_undone_again(plans: Plans) -> None:
    broken = {**BREAKS, "dependsOn": ["b"]}
    args = {"steps": [{"id": "in", "steps": [undoable("b"), broken]}]}
    (plans.workspace / "own.yaml").write_text(f"rollback: true\nsteps: {args['steps']}\n")
    own = {"id": "own", "tool": "plan", "args": {"file": "own.yaml"}, "dependsOn": ["a"]}
    view = await plans.run([undoable("a"), own], {"approveAll": True}, rollback=True)
    assert ends(plans) == ["a", "b", "undo b", "undo a"], view["log"]
    assert "status" not in step(view, "own").get("undo", {})


async def test_what_a_failed_child_plan_has_done_is_undone_and_it_begins_anew_when_resumed(plans: Plans) -> None:
    sub = child("sub", undoable("b"), work("breaks", "b", args=WAITS, timeout=0.5, retry={"attempts": 1}), needs=["a"])
    plan = await plans.start([undoable("a"), sub], rollback=True)
    view = await plan.ended()
    assert ends(plans) == ["a", "b", "undo b", "undo a"], view["log"]
    assert undo_status(view, "sub") == "completed"
    plans.go()
    again = Started(plans.client, (await resume(plans.client, plan.id)).workflow_id)
    assert (await again.ended())["status"] == "completed"
    assert ends(plans)[4:] == ["a", "b", "breaks"]


async def test_a_step_that_says_how_it_is_undone_is_undone_in_that_way_alone(plans: Plans) -> None:
    sub = child("sub", undoable("b"), undo={"tool": "append", "args": {"text": "undo all"}})
    await plans.run([sub, {**BREAKS, "dependsOn": ["sub"]}], rollback=True)
    assert ends(plans) == ["b", "undo all"]


async def test_an_undo_in_a_child_plan_that_fails_is_done_by_the_next_undo_alone(plans: Plans) -> None:
    sub = child("sub", undoable("b"), work("c", "b", undo={"tool": "work", "args": {"name": "undone-c", **WAITS}}))
    plan = await plans.start([sub, {**BREAKS, "dependsOn": ["sub"]}], rollback=True)
    undoing = await until_undoing(plan, "c")
    await undoing.signal("abandon", {"by": "ann"})
    await undoing.handle.cancel()
    view = await plan.ended()
    assert undo_status(view, "sub") == "failed"
    plans.go()
    before = ends(plans)
    started = await compensate(plans.client, plan.id)
    assert started is not None
    assert (await wait(plans.client, started.plan_id)).is_completed
    assert ends(plans)[len(before) :] == ["undone-c", "undo b"]


@pytest.mark.modes("plain")
async def test_a_rollback_of_child_plans_continues_after_its_worker_was_away_and_undoes_each_once(
    idle: Plans, make_worker: MakeWorker
) -> None:
    slow = work("b", undo={"tool": "work", "args": {"name": "slow", **WAITS}})
    steps = [undoable("a"), child("sub", slow, undoable("c", "b"), needs=["a"]), {**BREAKS, "dependsOn": ["sub"]}]
    async with make_worker():
        plan = await idle.start(steps, rollback=True)
        await until_undoing(plan, "b")
    idle.go()
    async with make_worker():
        await plan.ended()
    assert ends(idle) == ["a", "b", "c", "undo c", "slow", "undo a"]

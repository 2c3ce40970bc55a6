"""Approvals of single items of loops on a real server: by id, by pattern, by raw Temporal signal, for all to come."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from plansurvive.client import runs
from plansurvive.client.feature import views_of_features
from plansurvive.client.runs import Choice
from plansurvive.features.cache.commands import why_of
from plansurvive.features.outputs.attempts import Attempts
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import Refused
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.next_actions import next_actions
from tests.kit.driving import Plans, Started, work
from tests.workflows.test_approvals import gate
from tests.workflows.test_control_matrix import asked


def loop(items: list[str], **fields: Any) -> dict[str, Any]:
    """A loop whose items need approval."""
    return {**gate("each", **fields), "forEach": {"items": items, "key": "@"}, "args": {"name": "{{item}}"}}


async def asking(plan: Started, count: int) -> dict[str, Any]:
    """The first view in which so many items await approval."""
    return await plan.until(lambda view: len(view["pending"]) == count, f"{count} items await approval")


async def test_one_item_is_approved_by_its_id_and_the_others_by_a_raw_signal_with_a_pattern(plans: Plans) -> None:
    plan = await plans.start([loop(["a", "b/#2", "c"]), work("after", "each")])
    view = await asking(plan, 3)
    assert view["steps"][0]["inside"]["counts"] == {"awaiting approval": 3}
    await plan.approve("each[b/#2]", by="ann")
    await asking(plan, 2)
    await plan.approve("each[*]", by="raw")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert view["steps"][0]["inside"]["counts"] == {"completed": 3}
    texts = [entry["text"] for entry in view["log"] if entry["kind"] == "approved"]
    assert texts[0] == "step 'each[b/#2]' approved by ann"
    assert texts[1].startswith("2 steps 'each[*]' approved by raw (")


async def test_the_client_decides_about_every_item_that_it_has_shown(plans: Plans) -> None:
    plan = await plans.start([loop(["a", "b", "c"])])
    await asking(plan, 3)
    shown = list[Card]()
    found = await runs.decide_all(
        plans.client, plan.id, Choice(step_id="each[*]", by="ann"), approved=False, show=shown.extend
    )
    assert found == (3, {})
    assert sorted(item.item for item in shown) == ["a, item 1 of 3", "b, item 2 of 3", "c, item 3 of 3"]
    view = await plan.ended()
    assert view["steps"][0]["inside"]["counts"] == {"denied": 3}


@pytest.mark.uses("children")
async def test_what_the_child_plans_of_all_items_ask_is_decided_by_one_pattern(plans: Plans) -> None:
    kid = {"id": "kid", "tool": "plan", "args": {"steps": [gate("go")]}}
    plan = await plans.start([{"id": "each", "forEach": {"items": ["a", "b/c"], "key": "@"}, "steps": [kid]}])
    await plan.until(lambda view: len(asked(view)) == 2, "the plans of both items ask")
    so_far = await runs.summary(plans.client, plan.id)
    commands = [each.command for each in next_actions(so_far, views=views_of_features())]
    assert f"plan approve {so_far.plan_id} 'each[*].kid/go'" in commands
    why = (await why_of(plans.client, plan.id, "each")).text
    for path in ("each[a].kid/go", "each[b/c].kid/go"):
        assert f"it awaits approval: plan approve {so_far.plan_id} '{path}'" in why
    choice = Choice(step_id="each[*].kid/go", by="ann")
    with pytest.raises(Refused, match="runs no plan"):
        await runs.decide_all(plans.client, plan.id, Choice(step_id="each[*].k/go"), approved=True)
    shown = list[Card]()
    assert await runs.decide_all(plans.client, plan.id, choice, approved=True, show=shown.extend) == (2, {})
    assert len(shown) == 2
    view = await plan.ended()
    assert (view["status"], view["steps"][0]["inside"]["counts"]) == ("completed", {"completed": 2})


@pytest.mark.uses("children", "editing")
async def test_the_child_plans_that_refuse_a_decision_about_all_are_named_beside_those_that_take_it(
    plans: Plans,
) -> None:
    kid = {"id": "kid", "tool": "plan", "args": {"steps": [gate("go")]}}
    plan = await plans.start([{"id": "each", "forEach": {"items": ["a", "b"], "key": "@"}, "steps": [kid]}])
    view = await plan.until(lambda view: len(asked(view)) == 2, "the plans of both items ask")
    changed, _ = asked(view)["each[b].kid/go"]
    await runs.edit(plans.client, changed, [SetField(op="set", step_id="go", path="description", value="x")])
    choice = Choice(step_id="each[*].kid/go", by="ann", version=1)
    count, refused = await runs.decide_all(plans.client, plan.id, choice, approved=True)
    assert (count, [*refused]) == (1, ["each[b].kid/go"])
    assert "about version 1, the plan is at version 2" in refused["each[b].kid/go"]
    await plan.until(lambda view: view["steps"][0]["inside"]["counts"].get("completed") == 1, "one item ends")
    with pytest.raises(Refused) as all_refuse:
        await runs.decide_all(plans.client, plan.id, choice, approved=True)
    assert all_refuse.value.code == "STALE_VERSION"
    await runs.approve(plans.client, changed, Choice(step_id="go", by="ann"))
    assert (await plan.ended())["status"] == "completed"


async def test_a_pattern_that_nothing_fits_is_refused_with_what_waits_inside(plans: Plans) -> None:
    block = {"id": "each", "forEach": ["a"], "steps": [gate()]}
    plan = await plans.start([block])
    await asking(plan, 1)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await plan.handle.execute_update("decide", {"stepId": "each[*]", "approved": True})
    cause = refused.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, "inside: 'each[*].gate'" in cause.message) == ("NONE_AWAITS", True)
    await plan.approve("each[*].gate")
    assert (await plan.ended())["status"] == "completed"


async def test_what_is_remembered_for_one_item_holds_for_the_others(plans: Plans) -> None:
    plan = await plans.start([loop(["a", "b", "c"])])
    await asking(plan, 3)
    await plan.approve("each[a]", remember=True)
    assert (await plan.ended())["status"] == "completed"


async def test_the_attempts_of_an_item_and_of_its_loop_are_found(plans: Plans) -> None:
    plan = await plans.start([{**work("each"), "forEach": {"items": ["a/b", "c#2"], "key": "@"}}])
    await plan.ended()
    for name, count in (("each", 2), ("each[c#2]", 1), ("each[*]", 2)):
        known = await Attempts(plans.client, plan.id, name).known()
        assert len(known.attempts) == count, name
    page = await runs.inside(plans.client, plan.id, "each")
    assert [each.id for each in page.steps] == ["each[a/b]", "each[c#2]"]


async def test_the_files_of_one_item_are_undone(plans: Plans) -> None:
    write = {"id": "write", "tool": "write_file", "args": {"path": "{{item}}.txt", "content": "new"}}
    plan = await plans.start([{**write, "forEach": {"items": ["a", "b"], "key": "@"}}])
    await plan.ended()
    undone = await runs.undo(plans.client, plan.id, "write[a]")
    assert [each.path for each in undone.restored] == ["a.txt"]
    assert not (plans.workspace / "a.txt").exists()
    assert (plans.workspace / "b.txt").exists()
    undone = await runs.undo(plans.client, plan.id, "write")
    assert not (plans.workspace / "b.txt").exists()

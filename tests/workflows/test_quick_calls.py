"""`durable: batch` on a real server: calls of pure tools are recorded together, and otherwise are as any other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter

from plans.quick.batching import QUICK_SECONDS
from runtime.audit.events import LOCAL, Reader
from tests.driving import Plans, Started, View, statuses, step, work

BATCH: dict[str, Any] = {"durable": "batch"}


def look(step_id: str, *needs: str, seconds: float = 0.0, fails: int = 0, **more: Any) -> dict[str, Any]:
    """A step that calls a pure tool, which writes into the ledger all the same."""
    args = {"name": step_id, "seconds": seconds, "fails": fails}
    return {"id": step_id, "tool": "look", "args": args, "dependsOn": list(needs), **more}


def chain(count: int, seconds: float = 0.0) -> list[dict[str, Any]]:
    """Looks, one after the other."""
    return [look(f"s{n}", *([f"s{n - 1}"] if n else []), seconds=seconds) for n in range(count)]


async def quick(plan: Started) -> dict[str, tuple[Any, str, dict[str, Any]]]:
    """Of each step whose call was quick: its workflow task, what the UI shows, and what its result says of it."""
    found = {}
    for run, event in [(n, each) for n, history in enumerate(await plan.histories()) for each in history.events]:
        marker = event.marker_recorded_event_attributes
        if marker.marker_name != LOCAL or "result" not in marker.details:
            continue
        payloads = [*marker.details["data"].payloads, *marker.details["result"].payloads, event.user_metadata.summary]
        about, result, summary = await pydantic_data_converter.decode(payloads)
        if isinstance(result, dict) and result.get("quick"):
            task = run, marker.workflow_task_completed_event_id
            found[about["activity_id"]] = (task, f"{about['activity_type']}: {summary}", result["quick"])
    return found


def looked(plans: Plans) -> list[str]:
    """The steps that were looked at, in order."""
    return [line[1] for line in plans.ledger if line[0] == "look"]


def first_looks(plans: Plans) -> list[str]:
    """The same without repetitions: on a busy machine a call may be done too late, and is made again."""
    return list(dict.fromkeys(looked(plans)))


@pytest.mark.crosses_runs
async def test_a_chain_of_reads_is_recorded_together_and_shown_with_tool_id_and_description(plans: Plans) -> None:
    steps = chain(30)
    steps[1]["description"] = "the second look"
    plan = await plans.start(steps, **BATCH)
    view = await plan.ended()
    found = await quick(plan)
    assert set(statuses(view).values()) == {"completed"}
    assert first_looks(plans) == [f"s{n}" for n in range(30)]
    assert all(shown.startswith(f"look: {name}") for name, (_, shown, _) in found.items())
    assert "s1" not in found or found["s1"][1] == "look: s1 · the second look"
    assert {*found, *await plan.scheduled()} == {f"s{n}" for n in range(30)}
    assert found
    assert step(view, "s1")["result"]["attempt"] == 1


@pytest.mark.crosses_runs
async def test_what_a_workflow_task_holds_is_the_work_of_a_quarter_of_a_second(plans: Plans) -> None:
    plan = await plans.start(chain(40, seconds=0.01), **BATCH)
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    tasks: dict[Any, list[dict[str, Any]]] = {}
    for task, _, about in (await quick(plan)).values():
        tasks.setdefault(task, []).append(about)
    assert tasks
    for calls in tasks.values():
        assert max(each["ended"] for each in calls) - min(each["began"] for each in calls) <= QUICK_SECONDS
    assert first_looks(plans) == [f"s{n}" for n in range(40)]


@pytest.mark.slow
async def test_of_reads_at_once_one_at_a_time_is_quick_and_all_are_made(plans: Plans) -> None:
    plan = await plans.start([look(f"s{n}") for n in range(120)], **BATCH)
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    calls = sorted((about["began"], about["ended"]) for _, _, about in (await quick(plan)).values())
    assert all(ended <= began for (_, ended), (began, _) in pairwise(calls))
    assert set(looked(plans)) == {f"s{n}" for n in range(120)}


@pytest.mark.crosses_runs
async def test_effects_approvals_and_steps_that_say_so_are_recorded_one_by_one(plans: Plans) -> None:
    steps = [
        look("a"),
        work("b", "a"),
        look("c", "b", durable="step"),
        look("d", "c", requiresApproval=True),
        look("e", "d"),
    ]
    plan = await plans.start(steps, {"approveAll": True}, **BATCH)
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    assert set(await plan.scheduled()) >= {"b", "c", "d"}
    assert set(await quick(plan)) <= {"a", "e"}


async def test_a_quick_call_that_fails_is_made_again_and_only_then_its_attempts_count(plans: Plans) -> None:
    steps = [look("a", fails=1, retry={"attempts": 1}), look("b", "a", fails=2, retry={"attempts": 2, "delay": 0.05})]
    steps += [look("c", "b", fails=9, retry={"attempts": 1})]
    view = await plans.run(steps, **BATCH)
    assert statuses(view) == {"a": "completed", "b": "completed", "c": "failed"}
    assert step(view, "b")["result"]["attempt"] == 2
    assert step(view, "c")["result"]["code"] == "BUSY"
    assert sorted(looked(plans)) == ["a", "a", "b", "b", "b", "c", "c"]


@pytest.mark.slow
async def test_a_tool_that_takes_long_three_times_is_called_as_an_activity_from_then_on(plans: Plans) -> None:
    slow = [look(name, *needs, seconds=0.3) for name, needs in (("a", ""), ("b", "a"), ("c", "b"))]
    plan = await plans.start([*slow, look("d", "c"), look("e", "d")], **BATCH)
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    assert await quick(plan) == {}
    assert first_looks(plans) == ["a", "b", "c", "d", "e"]


@pytest.mark.slow
async def test_a_plan_of_reads_is_paused_and_cancelled_as_any_other(plans: Plans) -> None:
    plan = await plans.start(chain(150, seconds=0.01), **BATCH)
    await plan.until(lambda view: view["counts"].get("completed"), "a step completes")
    await plan.signal("pause")
    view: View = await plan.until(lambda view: view["status"] == "paused", "it is paused")
    assert 0 < view["counts"]["completed"] < 150
    await plan.signal("unpause")
    more = view["counts"]["completed"]
    await plan.until(lambda view: view["counts"]["completed"] > more, "it continues")
    await plan.handle.cancel()
    ended = await plan.ended()
    assert ended["status"] == "cancelled"
    assert ended["counts"]["completed"] < 150


async def test_a_step_cannot_ask_for_it_with_a_tool_that_has_effects(plans: Plans) -> None:
    view = await plans.run([work("a", durable="batch")])
    assert view["status"] == "failed"
    assert [problem["code"] for problem in view["problems"]] == ["NOT_PURE"]


async def test_the_audit_record_has_quick_calls_as_others(plans: Plans) -> None:
    plan = await plans.start([look("a"), look("b", "a", durable="step")], **BATCH)
    await plan.ended()
    reader = Reader(plan.client, plan.id)
    acts = [act for event in await plan.events() for act in await reader.acts(event)]
    calls = {name: [act for act in acts if act.step_id == name] for name in ("a", "b")}
    for name in ("a", "b"):
        assert [act.action for act in calls[name]] == ["step started", "step ended"]
    for one, other in zip(calls["a"], calls["b"], strict=True):
        assert (one.tool, one.outcome, one.attempt, one.client) == (
            other.tool,
            other.outcome,
            other.attempt,
            other.client,
        )
        assert len(one.args) == len(other.args) == 64

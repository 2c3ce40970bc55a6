"""The LLM revises a running plan: started steps stay unchanged, no other step starts, and `begin` continues."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.kit.driving import Plans, Started, View, statuses, step
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker
from tests.workflows.failing import failing
from tests.workflows.talking import answer, talking, write

pytestmark = pytest.mark.uses("planning")

SLOW = {
    "id": "slow",
    "tool": "run_command",
    "args": {"command": "while [ ! -e go ]; do sleep 0.05; done; echo x >> ran"},
    "requiresApproval": False,
}
"""It runs until there is a file `go`."""
FIRST = write("first")
LAST = write("last", "slow")


async def regenerate(plan: Started, feedback: str = "say it better") -> dict[str, Any]:
    """Send the update `regenerate`; returns its result."""
    found: dict[str, Any] = await plan.handle.execute_update("regenerate", {"feedback": feedback, "by": "ann"})
    return found


async def refusal_of(plan: Started) -> ApplicationError:
    """Send a `regenerate` that must fail; returns the error."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await regenerate(plan)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def goes_on_as_it_was(plans: Plans, plan: Started, view: View) -> None:
    """Assert that the plan was not revised, continues to run and completes."""
    assert (view["status"], view["version"], view["changes"]) == ("running", 1, [])
    (plans.workspace / "go").touch()
    assert (await plan.ended())["status"] == "completed"


async def in_flight(plans: Plans, *steps: dict[str, Any]) -> Started:
    """A plan whose first step has completed and whose second is running."""
    plan = await plans.start([FIRST, SLOW, *steps], title="Notes")
    await plan.until(lambda view: (statuses(view)["first"], statuses(view)["slow"]) == ("completed", "running"), "runs")
    return plan


def kept(view: View, name: str) -> Any:
    """The fields of a started step that must not change."""
    found = step(view, name)
    return {key: found.get(key) for key in ("id", "args", "status", "result", "startedAt", "endedAt")}


@pytest.mark.crosses_runs
async def test_what_has_not_begun_is_revised_while_a_step_is_in_flight(idle: Plans, make_worker: MakeWorker) -> None:
    better = answer(SLOW, write("last", "slow", content="$first.path"), write("new", "last"), write("at_once"))
    async with talking(make_worker, better) as llm:
        plan = await in_flight(idle, LAST, write("never", "last"))
        before = await plan.view()
        found = await regenerate(plan)
        assert [row.split(":")[0] for row in found["diff"]] == [
            "- never", "~ last.args.content", "+ new", "+ at_once"
        ]  # fmt: skip
        view = await plan.view()
        assert (view["status"], view["version"]) == ("review", 2)
        assert [kept(view, name) for name in ("first", "slow")] == [kept(before, name) for name in ("first", "slow")]
        prompt = llm.bodies[0]["messages"][-1]["content"]
        assert all(text in prompt for text in ("- slow: running", "=== TOOL HISTORY ===", "say it better"))
        (idle.workspace / "go").touch()
        view = await plan.until_status("slow", "completed")
        assert (view["status"], statuses(view)["last"], statuses(view)["at_once"]) == ("review", "ready", "ready")
        await plan.signal("begin", {"by": "ann"})
        view = await plan.ended()
    assert (view["status"], set(statuses(view).values())) == ("completed", {"completed"})
    assert (idle.workspace / "last.txt").read_text() == "first.txt"
    assert (idle.workspace / "ran").read_text() == "x\n"
    assert [(each["version"], each["by"], each["ops"]) for each in view["changes"]] == [(2, "ann", ["regenerate"])]


@pytest.mark.crosses_runs
async def test_a_plan_with_nothing_left_to_do_waits_for_what_the_llm_adds(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, {**answer(write("more", "first")), "delay": 1.0}) as llm:
        plan = await in_flight(idle)
        asked = asyncio.create_task(regenerate(plan, "one more note"))
        await until(lambda: llm.bodies, "the LLM is asked")
        (idle.workspace / "go").touch()
        await plan.until_status("slow", "completed")
        assert (await asked)["version"] == 2
        assert (await plan.view())["status"] == "review"
        await plan.signal("begin")
        view = await plan.ended()
    assert statuses(view) == {"first": "completed", "slow": "completed", "more": "completed"}


async def test_who_would_change_what_has_begun_is_corrected(idle: Plans, make_worker: MakeWorker) -> None:
    wrong = answer({**SLOW, "args": {"command": "rm -rf ."}}, LAST)
    async with talking(make_worker, wrong, answer(LAST, write("more"))) as llm:
        plan = await in_flight(idle, LAST)
        await regenerate(plan)
        assert "step 'slow' is running and cannot be changed" in llm.bodies[1]["messages"][-1]["content"]
        (idle.workspace / "go").touch()
        await plan.signal("begin")
        assert (await plan.ended())["status"] == "completed"


async def test_a_revision_that_failed_leaves_the_plan_running_as_it_was(idle: Plans, make_worker: MakeWorker) -> None:
    async with talking(make_worker, {"refusal": "I cannot help with that"}):
        plan = await in_flight(idle, LAST)
        assert (await refusal_of(plan)).type == "LLM_REFUSED"
        view = await plan.until_logged("unpaused", "the plan continues unchanged")
        await goes_on_as_it_was(idle, plan, view)


async def test_a_check_that_failed_for_good_leaves_the_plan_running_as_it_was_and_the_reason_is_told(
    idle: Plans, make_worker: MakeWorker
) -> None:
    def is_asked_for_all_tools(name: str, argument: Any) -> bool:
        return name == "check_plan" and argument.plan is None

    async with make_worker(client=failing(idle.client, is_asked_for_all_tools)):
        plan = await in_flight(idle, LAST)
        assert (await refusal_of(plan)).type == "CHECK_FAILED"
        view = await plan.until_logged("llm", "not revised: the worker could not list its tools: the disk is gone")
        await goes_on_as_it_was(idle, plan, view)


@pytest.mark.crosses_runs
async def test_a_revision_that_failed_leaves_a_pause_in_place_and_an_end_that_is_due_comes(
    idle: Plans, make_worker: MakeWorker
) -> None:
    async with talking(make_worker, {"refusal": "I cannot help with that", "delay": 1.0}) as llm:
        plan = await in_flight(idle)
        await plan.signal("pause")
        await plan.until(lambda view: view["status"] == "paused", "paused")
        asked = asyncio.create_task(regenerate(plan))
        await until(lambda: llm.bodies, "the LLM is asked")
        (idle.workspace / "go").touch()
        await plan.until_status("slow", "completed")
        with pytest.raises(WorkflowUpdateFailedError):
            await asked
        assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_an_approval_asked_for_before_is_asked_again_when_the_llm_changed_the_arguments(
    idle: Plans, make_worker: MakeWorker
) -> None:
    (idle.workspace / "a.txt").touch()
    (idle.workspace / "b.txt").touch()
    remove = {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}}
    async with talking(make_worker, answer({**remove, "args": {"path": "b.txt"}})):
        plan = await idle.start([remove])
        await plan.until_asked("remove")
        await regenerate(plan)
        await plan.signal("begin")
        view = await plan.until(lambda view: view["pending"] and view["status"] == "running", "it is asked again")
        assert view["pending"][0]["args"] == {"path": "b.txt"}
        await plan.approve("remove", version=2)
        await plan.ended()
    assert (idle.workspace / "a.txt").exists()
    assert not (idle.workspace / "b.txt").exists()

"""`owns`: a plan's runs replace their own files of earlier runs; and a plan that must complete to succeed."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from plansurvive.client import runs
from plansurvive.plans.run import PlanStatus
from tests.kit.driving import Plans, View, step
from tests.workflows.agents import call, says, serving
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import answer, make, talking

REPORT = {"id": "w", "tool": "write_file", "args": {"path": "report.md", "content": "new"}}
FIRST = {"id": "r", "tool": "list_directory", "args": {"path": "."}}


def as_left_by_an_earlier_run(plans: Plans) -> None:
    (plans.workspace / "report.md").write_text("old")


def report(plans: Plans) -> str:
    return (plans.workspace / "report.md").read_text()


@pytest.mark.crosses_runs
async def test_a_run_replaces_the_files_that_its_plan_owns(plans: Plans) -> None:
    as_left_by_an_earlier_run(plans)
    before = [{**FIRST, "id": f"r{number}"} for number in range(4)]
    last = {**REPORT, "dependsOn": [each["id"] for each in before]}
    view = await plans.run([*before, last], owns=["report.md"])
    assert (view["status"], report(plans)) == ("completed", "new")


async def test_without_owns_the_second_run_asks(plans: Plans) -> None:
    assert (await plans.run([REPORT]))["status"] == "completed"
    as_left_by_an_earlier_run(plans)
    started = await plans.start([REPORT], owns=["other.md"])
    await started.until_asked("w")
    await started.deny("w")
    assert (await started.ended())["status"] == "partial"
    assert report(plans) == "old"


async def test_a_strict_worker_honours_no_owns(idle: Plans, make_worker: MakeWorker) -> None:
    as_left_by_an_earlier_run(idle)
    async with make_worker(approvals="strict"):
        started = await idle.start([REPORT], owns=["**"])
        await started.until_asked("w")
        await started.approve("w")
        await started.ended()


@pytest.mark.uses("editing")
async def test_no_edit_makes_a_plan_own_more(plans: Plans) -> None:
    as_left_by_an_earlier_run(plans)
    started = await plans.start([REPORT], {"review": True})
    await started.until(lambda view: view["status"] == "review", "the review")
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await started.handle.execute_update("edit", {"edits": [{"op": "set", "path": "owns", "value": ["**"]}]})
    assert isinstance(caught.value.cause, ApplicationError)
    assert "UNKNOWN_FIELD" in str(caught.value.cause.type)
    await started.signal("begin", {"by": "ann"})
    await started.until_asked("w")
    await started.deny("w")
    await started.ended()


@pytest.mark.uses("planning")
async def test_what_an_llm_claims_to_own_does_not_count(idle: Plans, make_worker: MakeWorker) -> None:
    as_left_by_an_earlier_run(idle)
    async with talking(make_worker, answer({**REPORT, "description": "write it"}, owns=["**"])):
        started = await make(idle, "write a report", review=False)
        view = await started.until(lambda view: view["pending"] or view["problems"], "it asks, or is refused")
        assert not view.get("owns")
        await started.handle.cancel()
        await started.ended()
    assert report(idle) == "old"


@pytest.mark.uses("agents")
async def test_an_agent_works_on_the_files_that_its_plan_owns(idle: Plans, make_worker: MakeWorker) -> None:
    as_left_by_an_earlier_run(idle)
    story = [
        says({"tool_calls": [call("write_file", path="report.md", content="by the agent")]}),
        says({"answer": "It is written.", "confidence": "high"}),
    ]
    agent = {"id": "agent", "tool": "agent", "args": {"objective": "Write the report."}}
    async with serving(idle, make_worker)(story) as agents:
        view = await (await agents.plans.start([agent], owns=["report.md"])).ended()
    assert (view["status"], report(idle)) == ("completed", "by the agent")


async def failure(plans: Plans, steps: list[dict[str, Any]], **options: Any) -> tuple[ApplicationError, View]:
    """Why the workflow fails, and the plan's last view."""
    started = await plans.start(steps, options)
    with pytest.raises(WorkflowFailureError) as caught:
        await started.handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert (await runs.wait(plans.client, started.id)).status is PlanStatus.PARTIAL
    return caught.value.cause, await started.view()


async def test_a_partial_plan_fails_its_workflow(plans: Plans) -> None:
    missing = {"id": "r", "tool": "read_file", "args": {"path": "missing"}, "retry": {"attempts": 1}}
    cause, view = await failure(plans, [missing, {**REPORT, "args": {"path": "x", "content": "$r"}}])
    assert cause.type == "PLAN_PARTIAL"
    assert cause.message.startswith("the plan did not complete: 1 failed, 1 blocked; r: 'missing' does not exist")
    assert (view["status"], step(view, "r")["status"]) == ("partial", "failed")


async def test_a_plan_whose_steps_are_completed_or_skipped_does_not(plans: Plans) -> None:
    started = await plans.start([FIRST, {**REPORT, "when": "`false`"}])
    assert (await started.handle.result())["status"] == "completed"

"""The end of a plan: its record, and that the plan ends even if the record cannot be stored."""

from __future__ import annotations

import asyncio

import pytest

from plansurvive.plans.activity_io import END_RECORD
from plansurvive.plans.model import Step
from plansurvive.workflows.completion import MANY_STEPS, freed
from plansurvive.workflows.execution import Execution
from tests.kit.driving import Plans, work
from tests.plans.building import run_of
from tests.workflows.conftest import MakeWorker
from tests.workflows.failing import failing


@pytest.mark.modes("plain")
async def test_a_record_that_cannot_be_kept_keeps_no_plan_from_ending(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker(client=failing(idle.client, lambda name, _: name == "record_end")):
        plan = await idle.start([work("a")])
        summary = await plan.handle.result()
        assert (summary["status"], summary["counts"]["completed"]) == ("completed", 1)
        await plan.until_logged("warning", "SUMMARY.md could not be written: the disk is gone")


@pytest.mark.parametrize("more", [0, MANY_STEPS])
@pytest.mark.modes("plain")
async def test_the_end_of_a_plan_is_recorded_without_a_warning(idle: Plans, make_worker: MakeWorker, more: int) -> None:
    async with make_worker():
        plan = await idle.start([work("a"), *(work(f"s{number}", when="a == 'no'") for number in range(more))])
        view = await plan.ended()
        assert [each["status"] for each in view["steps"]] == ["completed"] + ["skipped"] * more
        assert END_RECORD in await (await plan.handle.describe()).memo()
        assert [entry["text"] for entry in (await plan.view())["log"] if entry["kind"] == "warning"] == []


@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.modes("plain")
async def test_a_workflow_that_is_over_gives_its_steps_back_when_the_worker_drops_it(is_over: bool) -> None:
    execution = Execution(run_of(Step(id="a", tool="read_file", args={"path": "a"})))
    waiting = asyncio.create_task(freed(execution, lambda: is_over))
    await asyncio.sleep(0)
    assert execution.run.steps, "it answers queries until then"
    waiting.cancel()
    await asyncio.wait([waiting])
    assert bool(execution.run.steps) is not is_over

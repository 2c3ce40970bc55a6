"""Steps bound to the workers of a queue: those with certain files or a certain capability."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Plans, step, work
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import talking, write
from tests.workflows.test_edits_of_plans import edit, in_review, put, refusal
from tests.workflows.test_recovery import says, started


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """The workspace of the second worker."""
    path = tmp_path / "far"
    path.mkdir()
    return path


@pytest_asyncio.fixture
async def far_queue(temporal_client: Client, settings: Settings, far: Path) -> AsyncIterator[str]:
    """A queue whose worker has another directory."""
    elsewhere = settings.with_flags(task_queue=f"{settings.task_queue}-far", workspace=str(far))
    async with build(temporal_client, elsewhere, load_tools(()), indexed=True):
        yield elsewhere.task_queue


@pytest.mark.crosses_runs
async def test_a_step_runs_where_its_queue_says_in_that_workers_own_directory(
    plans: Plans, workspace: Path, far: Path, far_queue: str
) -> None:
    (far / "data.txt").write_text("from afar")
    there = {"id": "there", "tool": "read_file", "args": {"path": "data.txt"}, "queue": far_queue}
    view = await plans.run(
        [there, {"id": "h", "tool": "write_file", "args": {"path": "copy.txt", "content": "$there"}}]
    )
    assert view["status"] == "completed"
    assert (workspace / "copy.txt").read_text() == "from afar"
    assert not (far / "copy.txt").exists()


@pytest.mark.crosses_runs
async def test_a_whole_plan_can_be_bound_to_a_queue(plans: Plans, far: Path, far_queue: str) -> None:
    steps = [{"id": "a", "tool": "write_file", "args": {"path": "a.txt", "content": "a"}}]
    view = await plans.run(steps, {"workspace": str(far)}, queue=far_queue)
    assert view["status"] == "completed"
    assert (far / "a.txt").read_text() == "a"


async def test_a_tool_that_only_the_workers_of_the_queue_lack_is_told_before_anything_starts(
    plans: Plans, workspace: Path, far_queue: str
) -> None:
    write = {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "a"}}
    work = {"id": "x", "tool": "work", "args": {"name": "x"}, "queue": far_queue}
    view = await plans.run([write, work])
    assert view["status"] == "failed"
    assert view["stopped"].startswith("its worker refused it: UNKNOWN_TOOL: step 'x' ")
    assert [problem["code"] for problem in view["problems"]] == ["UNKNOWN_TOOL"]
    assert step(view, "w")["status"] == "blocked"
    assert not (workspace / "a.txt").exists()


@pytest.mark.uses("editing")
async def test_an_edit_binds_a_step_to_a_queue_the_plan_did_not_use_before(
    plans: Plans, workspace: Path, far: Path, far_queue: str
) -> None:
    write = {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "a"}}
    plan = await in_review(plans, write)
    await edit(plan, put("w", "queue", far_queue))
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"
    assert (far / "a.txt").exists()
    assert not (workspace / "a.txt").exists()


@pytest.mark.uses("editing")
async def test_an_edit_is_judged_by_the_workers_of_the_queue_it_names(plans: Plans, far_queue: str) -> None:
    plan = await in_review(plans, work("a"))
    wrong = await refusal(plan, put("a", "queue", far_queue))
    assert (wrong.type, wrong.details[0]["problems"][0]["code"]) == ("INVALID_PLAN", "UNKNOWN_TOOL")
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_queue_that_no_worker_serves_is_refused_in_seconds(plans: Plans) -> None:
    plan = await in_review(plans, work("a"))
    wrong = await refusal(plan, put("a", "queue", f"{plans.queue}-nobody"))
    assert (wrong.type, "no worker serves queue" in wrong.message) == ("UNKNOWN_QUEUE", True)
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.uses("planning")
async def test_a_step_of_a_queue_is_recovered_with_the_tools_of_its_workers_where_they_are(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, settings: Settings, far: Path
) -> None:
    far_queue = f"{idle.queue}-far"
    there = {"id": "there", "tool": "read_file", "args": {"path": "data.txt"}, "queue": far_queue}
    lacking = write("lacking", tool="refuse", args={"code": "X"})
    made = write("make", args={"path": "data.txt", "content": "made"})
    choices = [says("insert", steps=[lacking]), says("insert", steps=[made])]
    elsewhere = settings.with_flags(task_queue=far_queue, workspace=str(far))
    async with (
        build(temporal_client, elsewhere, load_tools(()), indexed=True),
        talking(make_worker, *choices) as llm,
    ):
        plan = await started(idle, there, work("here"))
        view = await plan.ended()
    assert view["status"] == "completed"
    assert (far / "data.txt").read_text() == "made"
    assert not (idle.workspace / "data.txt").exists()
    assert step(view, "make")["queue"] == far_queue
    asked = [body["messages"][-1]["content"] for body in llm.bodies]
    assert len(asked) == 2
    assert "'refuse'" in asked[1]
    assert "- refuse" not in llm.bodies[0]["messages"][0]["content"]

"""Where plans may work, on the real server: a plan cannot choose, a person can grant, the worker's settings decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from plansurvive.runtime.base.code_place import CODE
from tests.kit.driving import Plans, Started, View, step
from tests.workflows.conftest import MakeWorker
from tests.workflows.talking import answer, make, talking

WRITE = {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "a"}}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere"
    path.mkdir()
    return path


async def started(plans: Plans, options: dict[str, Any], **plan: Any) -> Started:
    """A plan whose options name no workspace, unless these do."""
    return await plans.start_with({"plan": {"steps": [WRITE], **plan}, "options": options})


async def refused(plan: Started) -> str:
    """Why the worker refused the workspace of a plan."""
    with pytest.raises(WorkflowFailureError) as caught:
        await plan.handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    (problem,) = caught.value.cause.details[0]
    assert (problem["code"], problem["field"]) == ("WORKSPACE_REFUSED", "workspace")
    return str(problem["message"])


async def test_a_plan_cannot_choose_a_directory_that_nobody_granted(plans: Plans, elsewhere: Path) -> None:
    message = await refused(await started(plans, {}, workspace=str(elsewhere)))
    assert str(elsewhere) in message
    assert "PLANS_WORKSPACES" in message
    granted = {"granted": [str(plans.workspace)]}
    assert str(elsewhere) in await refused(await started(plans, granted, workspace=str(elsewhere)))
    assert str(elsewhere) in await refused(await started(plans, granted | {"workspace": str(elsewhere)}))
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("path", ["/etc", "/usr/lib", "/var/lib", str(Path.home()), str(CODE / "plans")])
async def test_some_directories_are_never_workspaces_whoever_grants_them(plans: Plans, path: str) -> None:
    for options in ({"workspace": path}, {"workspace": path, "granted": [path, "/"]}, {"granted": [path]}):
        assert "is never a workspace" in await refused(await started(plans, options, workspace=path))


@pytest.mark.crosses_runs
async def test_a_plan_works_where_a_person_grants_it(plans: Plans, elsewhere: Path) -> None:
    ways: list[dict[str, Any]] = [{"workspace": str(elsewhere)}, {"granted": [str(elsewhere.parent)]}]
    for number, options in enumerate(ways):
        view = await (await started(plans, {**plans.options, **options}, workspace=str(elsewhere))).ended()
        assert (view["status"], view["workspace"]) == ("completed", str(elsewhere)), number
        (elsewhere / "a.txt").unlink()


async def test_the_list_of_the_worker_is_all_that_counts(
    idle: Plans, make_worker: MakeWorker, elsewhere: Path, workspace: Path
) -> None:
    async with make_worker(workspaces=(str(workspace),)):
        assert "PLANS_WORKSPACES" in await refused(await started(idle, {"workspace": str(elsewhere)}))
        assert (await (await started(idle, {"workspace": str(workspace)})).ended())["status"] == "completed"


def asked(view: View) -> list[str]:
    return [each["id"] for each in view["steps"] if each.get("awaiting") == "approval"]


async def test_an_author_may_waive_the_question_about_a_name_that_runs_later(plans: Plans) -> None:
    makefile = {"id": "m", "tool": "write_file", "args": {"path": "Makefile", "content": "all:\n"}}
    view = await plans.run([{**makefile, "requiresApproval": False}])
    assert step(view, "m")["status"] == "completed"
    (plans.workspace / "Makefile").unlink()
    plan = await plans.start([makefile])
    view = await plan.until(asked, "a person is asked")
    assert not (plans.workspace / "Makefile").exists()
    await plan.approve("m")
    assert step(await plan.ended(), "m")["status"] == "completed"


async def test_an_llm_may_not(idle: Plans, make_worker: MakeWorker) -> None:
    args = {"path": ".claude/settings.json", "content": "{}"}
    step = {"id": "m", "tool": "write_file", "args": args, "description": "d", "requiresApproval": False}
    async with talking(make_worker, answer(step, workspace="/etc")):
        plan = await make(idle, "set up", review=False)
        await plan.until(asked, "a person is asked")
        await plan.deny("m")
        await plan.ended()
    assert not (idle.workspace / ".claude").exists()

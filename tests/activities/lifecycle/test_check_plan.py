"""The check of a plan on a worker covers the steps inside others, each on the task queue that it runs on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.definition.scopes import outermost, queues
from plansurvive.plans.model import Plan
from tests.plans.building import TOOLS, spec

PLAN = Plan.model_validate(
    {
        "steps": [
            {
                "id": "b",
                "steps": [
                    {
                        "id": "here",
                        "tool": "note",
                        "args": {"text": "x"},
                        "undo": {"tool": "delete_file", "args": {"path": "x"}},
                    },
                    {"id": "there", "tool": "render", "queue": "gpu"},
                ],
                "catch": [{"steps": [{"id": "say", "tool": "sleep", "args": {"seconds": 1}}]}],
            }
        ],
        "finally": [{"id": "bye", "tool": "gone"}],
    }
)


def checked(directory: Path, **fields: Any) -> Any:
    return PlanChecker(TOOLS).check_plan(CheckRequest(plan=PLAN, workspace=str(directory), **fields))


def test_a_worker_judges_the_steps_of_its_own_queue_at_every_level(tmp_path: Path) -> None:
    own = checked(tmp_path)
    assert [(each.step_id, each.code) for each in own.problems] == [("finally.bye", "UNKNOWN_TOOL")]
    [said] = [each.message for each in own.problems]
    assert "`plan tools`" not in said, "which lists the tools of the machine that asks"
    assert "PLANS_TOOLS where that worker is started" in said
    assert set(own.tools) == {"note", "delete_file", "sleep"}
    other = checked(tmp_path, queue="gpu")
    assert [(each.step_id, each.code) for each in other.problems] == [("b.there", "UNKNOWN_TOOL")]


def test_a_step_that_fails_for_certain_is_refused_before_anything_runs(tmp_path: Path) -> None:
    each = {"id": "each", "forEach": ["a"], "tool": "note", "args": {"text": "{{item}}"}}
    steps = [each, {"id": "b", "tool": "note", "args": {"text": "{{each.path}}"}}]
    request = CheckRequest(plan=Plan.model_validate({"steps": steps}), workspace=str(tmp_path))
    [problem] = PlanChecker(TOOLS).check_plan(request).problems
    assert (problem.code, problem.step_id, problem.field) == ("BAD_REFERENCE", "b", "args.text")


def test_an_absolute_path_outside_the_workspace_is_refused_before_anything_runs(tmp_path: Path) -> None:
    def found(path: str, **fields: Any) -> list[tuple[str | None, str]]:
        step = {"id": "read", "tool": "read_file", "args": {"path": path}}
        block = Plan.model_validate({"steps": [{"id": "b", "steps": [step]}]})
        tools = TOOLS | {"read_file": spec("read_file", {"path": {"type": "string"}})}
        asked = CheckRequest(plan=block, workspace=str(tmp_path / "link"), **fields)
        return [(each.step_id, each.code) for each in PlanChecker(tools).check_plan(asked).problems]

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert found("/etc/passwd") == found(f"{tmp_path}/real/../x") == [("b.read", "PATH_OUTSIDE")]
    assert found(f"{tmp_path}/real/x") == found(f"{tmp_path}/link/x") == found("x") == []
    assert found("{{inputs.x}}/../..") != [("b.read", "PATH_OUTSIDE")]  # known once it has a value


def test_the_queues_of_a_plan_are_those_of_all_its_steps() -> None:
    assert queues(outermost(PLAN)) == ["gpu"]


async def test_a_check_that_is_cancelled_is_not_cut_off_anywhere(tmp_path: Path) -> None:
    """An exception that the SDK raises in a thread can come in the middle of whatever it does."""

    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def cancelled() -> bool:
        loop.call_soon_threadsafe(begun.set)
        while not activity.is_cancelled():
            time.sleep(0.001)
        for _ in range(1_000):
            time.sleep(0)
        return True

    environment, checker = ActivityEnvironment(), PlanChecker(TOOLS, search_attributes=cancelled)
    request = CheckRequest(plan=PLAN, workspace=str(tmp_path))
    checking = asyncio.create_task(asyncio.to_thread(environment.run, checker.check_plan, request))
    await begun.wait()
    environment.cancel()
    assert (await checking).search_attributes

"""What a host takes and refuses: plans begin in a directory of their own, stay in it, and never share one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.hosts.hosting import Hosting
from plansurvive.features.hosts.in_worker import HostActivities
from plansurvive.plans.activity_io import CheckRequest, Facts
from plansurvive.plans.execution.next_action import Begin, next_action
from plansurvive.plans.hosts.host import Host, HostRequest
from plansurvive.plans.model import Plan
from plansurvive.runtime.connect import storage
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.value_store import ValueStore
from tests.plans.building import TOOLS, begun, spec, step

PLAN = "plan-x"
HOST = Host(name="a", queue="plans@a", workspace="/w", token="1")


def hosting(settings: Settings, **more: Any) -> Hosting:
    settings = settings.with_flags(host="alpha", **more)
    made = Hosting.of(settings, ValueStore(storage(settings)), Effects.of(settings))
    assert made is not None
    return made


async def test_a_plan_begins_with_the_files_of_the_seed_and_in_an_empty_directory_without_one(
    settings: Settings, tmp_path: Path
) -> None:
    empty = await hosting(settings).take(HostRequest(workflow_id=PLAN), settings.task_queue)
    assert (empty.name, empty.queue, empty.checkpoint) == ("alpha", f"{settings.task_queue}@alpha", None)
    assert [*Path(empty.workspace).iterdir()] == []
    seed = tmp_path / "seed"
    seed.mkdir()
    (seed / "a").write_text("a")
    begun_with = await hosting(settings, host_seed=seed).take(HostRequest(workflow_id="plan-y"), settings.task_queue)
    assert (Path(begun_with.workspace) / "a").read_text() == "a"
    assert begun_with.checkpoint is not None, "another host's seed may be another"


async def test_a_plan_stays_where_its_files_are_and_gets_a_new_directory_when_it_comes_from_elsewhere(
    settings: Settings,
) -> None:
    here = hosting(settings)
    first = await here.take(HostRequest(workflow_id=PLAN), settings.task_queue)
    assert await here.take(HostRequest(workflow_id=PLAN, earlier=first, stay=True), settings.task_queue) == first
    again = await here.take(HostRequest(workflow_id=PLAN, earlier=first), settings.task_queue)
    assert again.workspace != first.workspace
    assert not Path(first.workspace).exists()
    gone = HostRequest(workflow_id=PLAN, earlier=first, stay=True)
    assert (await here.take(gone, settings.task_queue)).token != first.token


async def test_the_steps_of_a_plan_stay_on_the_hosts_queue_for_the_task_queue_that_it_came_on(
    settings: Settings,
) -> None:
    here = hosting(settings, queues="gpu")
    bound = await here.take(HostRequest(workflow_id=PLAN), "gpu")
    assert bound.queue == "gpu@alpha"
    assert (await here.take(HostRequest(workflow_id=PLAN, earlier=bound), bound.queue)).queue == "gpu@alpha"


async def test_what_could_not_be_restored_leaves_no_directory_behind(settings: Settings, workspace: Path) -> None:
    here = hosting(settings)
    made = await here.take(HostRequest(workflow_id=PLAN), settings.task_queue)
    (Path(made.workspace) / "a").write_text("a")
    home = here.homes.of(made.workspace)
    assert home is not None
    taken = await here.checkpoints.take(home)
    assert taken is not None
    for file in (settings.state_dir / "values").rglob("*"):
        if file.is_file():
            file.write_bytes(b"damaged")
    before = {*workspace.iterdir()}
    request = HostRequest(workflow_id="plan-y", earlier=made.after(taken))
    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(HostActivities(here).take_host, request)
    assert caught.value.type == "VALUE_CORRUPT"
    assert {*workspace.iterdir()} == before


async def test_a_worker_without_a_workspace_of_its_own_takes_no_plan(settings: Settings) -> None:
    assert Hosting.of(settings, ValueStore(storage(settings)), Effects.of(settings)) is None
    with pytest.raises(ApplicationError) as caught:
        await HostActivities(None).take_host(HostRequest(workflow_id=PLAN))
    assert (caught.value.type, caught.value.non_retryable) == ("NO_HOST", False)


def test_a_host_needs_a_workspace(environ: dict[str, str]) -> None:
    del environ["PLANS_WORKSPACE"]
    settings = Settings.read(environ | {"PLANS_HOST": "alpha"})
    with pytest.raises(SettingError, match="PLANS_WORKSPACE"):
        Hosting.of(settings, ValueStore(storage(settings)), Effects.of(settings))


@pytest.mark.parametrize("queue", [None, "shared"])
def test_an_agent_at_a_host_begins_wherever_its_step_is_bound_to(queue: str | None, tmp_path: Path) -> None:
    child = {"id": "it", "tool": "agent", "args": {"objective": "x"}, "queue": queue}
    plan = Plan.model_validate({"steps": [child, {"id": "n", "tool": "note", "args": {"text": "x"}}]})
    tools = {name: tool.spec for name, tool in load_tools(()).items()} | TOOLS
    facts = PlanChecker(tools, str(tmp_path), own_files=True).check_plan(CheckRequest(plan=plan, workspace="/nowhere"))
    assert facts.problems == []
    assert (facts.own_files, facts.workspace) == (True, str(tmp_path)), "the host's own workspace counts"
    schedule = begun(step("it", tool="agent", args={"objective": "x"}, queue=queue), facts=_facts())
    schedule.run.host = HOST
    assert isinstance(next_action(schedule, "it"), Begin)


def _facts() -> Facts:
    agent = spec("agent", {"objective": {"type": "string"}}, durable=True)
    return Facts(tools={**TOOLS, "agent": agent}, workspace="/w")

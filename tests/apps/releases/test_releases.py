"""Releases on a real server: plans stay with their version and move forward as they continue; rollback is one call."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.releases.all_queues import with_all_queues
from plansurvive.apps.releases.at_versions import AtVersion, all_versions
from plansurvive.apps.releases.control import Drain, ramp, rollback
from plansurvive.runtime.joining import joined
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import Neighbours
from plansurvive.runtime.versions.routing import BadVersion, NoVersions, routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version
from plansurvive.worker import build, identity
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, work
from tests.kit.servers import development_server
from tests.kit.waiting import connected, until

ROOT = Path(__file__).parent.parent.parent.parent


@dataclass
class Team:
    """A deployment of the test's own, with workers of any build."""

    client: Client
    settings: Settings
    plans: Plans
    name: str
    stack: AsyncExitStack

    async def worker(self, build_id: str, further: str = "") -> Version:
        """Start a worker of a build, or one for a further task queue; returns when the server knows its version."""
        version = Version(self.name, build_id)
        await self.stack.enter_async_context(self._running(version, further))
        await until(lambda: self._is_known(version), f"the server knows {version.text}")
        return version

    async def at(self, version: Version) -> AtVersion:
        """How a version stands."""
        found = await all_versions(self.client, self.settings.task_queue, await routing(self.client, self.name))
        return next(each for each in found if each.version == version)

    async def until_plans(self, version: Version, count: int) -> None:
        """Until so many plans are at a version, as the server's search has it."""

        async def are() -> bool:
            return (await self.at(version)).plans == count

        await until(are, f"{count} plans are at {version.text}")

    def drain(self, version: Version) -> Drain:
        """What drains a version."""
        return Drain(self.client, self.settings.task_queue, version, lambda _: None)

    async def _is_known(self, version: Version) -> bool:
        try:
            found = await all_versions(self.client, self.settings.task_queue, await routing(self.client, self.name))
        except BadVersion:
            return False
        return any(each.version == version and each.workers for each in found)

    @asynccontextmanager
    async def _running(self, version: Version, further: str) -> AsyncIterator[None]:
        neighbours = Neighbours(version)
        queue, tools = self.settings.task_queue, load_tools([LEDGER_TOOLS])
        looking = asyncio.create_task(neighbours.keep_looking(self.client, queue, identity(), every=0.5))
        async with build(self.client, self.settings, tools, indexed=True, neighbours=neighbours, polls=further):
            yield
        looking.cancel()


@asynccontextmanager
async def deployed(client: Client, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Team]:
    """A deployment with a name and a queue of its own; its workers end with it."""
    environ = {"PLANS_TASK_QUEUE": queue, "PLANS_STATE_DIR": str(state_dir), "PLANS_GRACE": "0"}
    settings = Settings.read({**environ, "PLANS_WORKSPACES": str(workspace)})
    async with AsyncExitStack() as workers:
        yield Team(client, settings, Plans(client, queue, workspace), f"team-{uuid.uuid4().hex[:8]}", workers)


@pytest_asyncio.fixture
async def team(temporal_client: Client, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Team]:
    async with deployed(temporal_client, queue, state_dir, workspace) as team:
        yield team


def asks() -> list[dict[str, Any]]:
    return [{"id": "a", "tool": "write_file", "requiresApproval": True, "args": {"path": "a.txt", "content": "x"}}]


async def asking(team: Team) -> Started:
    plan = await team.plans.start(asks())
    await plan.until_asked("a")
    return plan


async def version_of(plan: Started) -> str:
    info = (await plan.handle.describe()).raw_description.workflow_execution_info
    return info.versioning_info.deployment_version.build_id


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_stays_with_its_version_until_it_is_moved_and_a_release_is_taken_back_in_one_call(
    team: Team,
) -> None:
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    old = await asking(team)
    two = await team.worker("2")
    await ramp(team.client, two, 100)
    new = await asking(team)
    assert [await version_of(plan) for plan in (old, new)] == ["1", "2"]
    await team.until_plans(one, 1)
    assert (await team.at(one)).state == "draining"

    drain = team.drain(one)
    assert await drain.move() == 1
    assert not drain.refused
    assert (await asyncio.wait_for(drain.wait(), 60)).plans == 0
    await old.approve("a")
    assert (await old.ended())["status"] == "completed"
    assert await version_of(old) == "2"

    taken, where = await rollback(team.client, team.settings.task_queue, team.name)
    assert (taken, where.current) == (two, one)
    with pytest.raises(BadVersion, match="older than"):
        await team.drain(two).move()
    await new.approve("a")
    assert (await new.ended())["status"] == "completed"
    assert await version_of(new) == "2"


@pytest.mark.slow
async def test_a_plan_that_continues_as_new_moves_to_a_newer_version_and_never_to_an_older_one(team: Team) -> None:
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    two = await team.worker("2")
    await ramp(team.client, two, 100)
    await rollback(team.client, team.settings.task_queue, team.name)
    stays = await long_plan(team)
    assert (await stays.ended())["status"] == "completed"
    assert len(await stays.histories()) > 1
    assert await version_of(stays) == "1"
    moves = await long_plan(team)
    await moves.until_status("s1", "completed")
    await ramp(team.client, two, 100)
    assert (await moves.ended())["status"] == "completed"
    assert len(await moves.histories()) > 1
    assert await version_of(moves) == "2"


async def long_plan(team: Team) -> Started:
    """A plan of steps one after the other, which continues as new several times."""
    steps = [work("s0"), *(work(f"s{n}", f"s{n - 1}", seconds=0.1) for n in range(1, 30))]
    return await team.plans.start(steps, {"historyLimit": 12})


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_ramp_is_ended_before_a_release_is_taken_back(team: Team) -> None:
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    two = await team.worker("2")
    where = await ramp(team.client, two, 25)
    assert (where.current, where.ramping, where.percent) == (one, two, 25.0)
    taken, where = await rollback(team.client, team.settings.task_queue, team.name)
    assert (taken, where.current, where.ramping) == (two, one, None)
    taken, where = await rollback(team.client, team.settings.task_queue, team.name)
    assert (taken, where.current.build) == (one, UNVERSIONED)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_version_gets_new_plans_once_its_workers_listen_to_every_task_queue_in_use(team: Team) -> None:
    further = f"{team.settings.task_queue}-gpu"
    one = await team.worker("1")
    await team.worker("1", further)
    await ramp(team.client, one, 100)
    plan = await team.plans.start([work("a", queue=further)])
    assert (await plan.ended())["status"] == "completed"
    two = await team.worker("2")
    where = await routing(team.client, team.name)
    refused = 0

    async def current() -> None:
        nonlocal refused
        refused += 1
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=team.client.namespace, deployment_name=two.name, build_id=two.build, conflict_token=where.token
        )
        await team.client.workflow_service.set_worker_deployment_current_version(request, retry=True)

    with pytest.raises(BadVersion, match=f"{further} .activity.") as error:
        await with_all_queues(team.client, one, two, current, patience=0)
    assert refused == 1
    assert "PLANS_QUEUES" in str(error.value)
    ramping = asyncio.create_task(ramp(team.client, two, 100))
    await team.worker("2", further)
    assert (await ramping).current == two


@pytest.mark.slow
async def test_a_deployment_is_found_while_the_server_keeps_changing_it(team: Team) -> None:
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    two = await team.worker("2")
    changing = asyncio.create_task(_changed(team, two))

    async def look() -> int:
        found = 0
        while not changing.done():
            assert (await routing(team.client, team.name)).current == one
            found += 1
        return found

    assert sum(await asyncio.gather(*(look() for _ in range(8)))) > 25
    await changing


async def _changed(team: Team, version: Version) -> None:
    """Ramp a version step by step: each makes the server's own workflow continue as new."""
    for percent in range(25):
        await ramp(team.client, version, percent + 1.0)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_plans_begun_without_a_version_continue_at_the_first_one(team: Team) -> None:
    plain = build(team.client, team.settings, load_tools([LEDGER_TOOLS]), indexed=True)
    async with plain:
        plan = await asking(team)
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    await plan.approve("a")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_what_the_server_does_not_know_or_gives_new_plans_is_neither_ramped_nor_drained(team: Team) -> None:
    one = await team.worker("1")
    await ramp(team.client, one, 100)
    with pytest.raises(BadVersion, match="knows no version"):
        await ramp(team.client, Version(team.name, "never"), 100)
    with pytest.raises(BadVersion, match="gets new plans"):
        await team.drain(one).wait()
    with pytest.raises(BadVersion, match="already"):
        await rollback(team.client, team.settings.task_queue, team.name, one)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_server_without_versions_says_so_and_is_asked_not_guessed(
    temporal_binary: Path, tmp_path: Path, state_dir: Path
) -> None:
    off = ("system.enableDeploymentVersions=false", "system.enableDeployments=false")
    async with development_server(temporal_binary, tmp_path, *off) as server:
        client = await connected(server.address)
        settings = Settings.read({"PLANS_STATE_DIR": str(state_dir), "PLANS_DEPLOYMENT": "team/1"})
        with pytest.raises(NoVersions, match="enableDeploymentVersions"):
            await joined(settings, client)
        assert await joined(Settings.read({"PLANS_STATE_DIR": str(state_dir)}), client) is None

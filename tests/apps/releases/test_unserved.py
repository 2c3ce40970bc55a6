"""`plan doctor` says which version of the workers' code lacks workers, and what to do about it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.apps.releases.at_versions import AtVersion
from plansurvive.apps.releases.control import ramp
from plansurvive.apps.releases.doctor_of_server import lacking, unserved
from plansurvive.client.doctor import Verdict, examine
from plansurvive.runtime.versions.routing import BadVersion, routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version
from tests.chaos.conftest import WorkerProcess
from tests.kit.driving import Plans
from tests.kit.waiting import until

OLD, NEW = Version("team", "1"), Version("team", "2")


def at(version: Version, plans: int, *workers: str, others: int = 0) -> AtVersion:
    return AtVersion(version, plans, others, workers, "draining")


def test_only_a_version_that_something_waits_for_is_reported() -> None:
    assert lacking(at(OLD, 3, "a worker"), NEW) == ""
    assert lacking(at(OLD, 0), NEW) == ""
    assert "3 plans and agents wait" in lacking(at(OLD, 2, others=1), NEW)
    assert "1 plan or agent waits" in lacking(at(OLD, 1), NEW)
    assert "plan worker drain team/1 --move" in lacking(at(OLD, 1), NEW)
    assert "plan worker rollback" in lacking(at(NEW, 0), NEW)
    assert lacking(at(NEW, 0, "a worker"), NEW) == ""
    assert lacking(at(NEW, 0), OLD) == ""
    assert lacking(at(Version("team", UNVERSIONED), 5), None) == ""  # what waits there is the finding `worker`


@pytest.fixture
def worker_process(environ: dict[str, str], tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker of a deployment of the test's own, not yet started."""
    name = f"team-{uuid.uuid4().hex[:8]}"
    process = WorkerProcess([sys.executable, "worker.py", "--version", name], environ, tmp_path / "worker.log")
    yield process
    process.kill()


@pytest.mark.slow
async def test_a_killed_version_with_plans_is_a_warning_until_a_worker_is_back(
    worker_process: WorkerProcess, environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    name = worker_process.command[-1]
    await worker_process.up()

    async def known() -> bool:
        try:
            return bool((await routing(temporal_client, name)).known)
        except BadVersion:
            return False

    await until(known, "the server knows the version")
    [only] = (await routing(temporal_client, name)).known
    await ramp(temporal_client, only.version, 100)
    step = {"id": "a", "tool": "write_file", "requiresApproval": True, "args": {"path": "a.txt", "content": "x"}}
    plan = await Plans(temporal_client, queue, workspace).start([step])
    await plan.until_asked("a")
    assert await unserved(temporal_client, queue) == []
    worker_process.kill()

    [text] = await unserved(temporal_client, queue)
    assert text.startswith(f"new plans go to {only.version.text}, which no worker runs")
    [finding] = [each for each in await examine(environ) if each.subject == "versions"]
    assert (finding.verdict, finding.text) == (Verdict.WARNING, text)

    await ramp(temporal_client, Version(name, UNVERSIONED), 100)

    async def waits() -> bool:
        return any("1 plan or agent waits" in text for text in await unserved(temporal_client, queue))

    await until(waits, "the plan that waits is counted")
    assert await unserved(temporal_client, f"{queue}-other") == []  # the control: it belongs to this queue
    await worker_process.up()

    async def served() -> bool:
        return not await unserved(temporal_client, queue)

    await until(served, "a worker of the version is back")
    await plan.approve("a")
    assert (await plan.ended())["status"] == "completed"

"""Records of plans go by age, and only when the server has their plan no more; a schedule does it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.schedules.upkeep import schedule_prune
from plansurvive.apps.schedules.views import list_schedules
from plansurvive.features.signing.schedule_book import USED, is_first
from plansurvive.features.upkeep.prune import prune
from plansurvive.features.upkeep.records import prune_records
from plansurvive.runtime.connect import connect
from plansurvive.runtime.scratch import owned
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.client.cli.command import plan as command
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, step
from tests.kit.waiting import until

DAY = timedelta(days=1)
GATE = {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True}


@pytest_asyncio.fixture
async def client(settings: Settings) -> Client:
    return await connect(settings)


@pytest_asyncio.fixture
async def plans(client: Client, settings: Settings, workspace: Path) -> AsyncIterator[Plans]:
    async with build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        yield Plans(client, settings.task_queue, workspace)


def record(settings: Settings, name: str, *, old: bool = True) -> Path:
    """A record of a plan, three days old."""
    folder = settings.state_dir / "runs" / name
    folder.mkdir(parents=True)
    path = folder / "SUMMARY.md"
    path.write_text("x" * 100)
    if old:
        os.utime(path, (time.time() - 3 * 86_400,) * 2)
    return path


async def test_records_of_plans_that_are_gone_go_and_those_of_others_stay(
    plans: Plans, client: Client, settings: Settings
) -> None:
    running = await plans.start([GATE])
    await running.until_asked("gate")
    needed, young = record(settings, running.id.removeprefix("plan-")), record(settings, "young", old=False)
    gone = record(settings, "gone")
    log = settings.state_dir / "server.old.log"
    log.write_text("y" * 50)
    os.utime(log, (time.time() - 3 * 86_400,) * 2)
    assert await prune_records(client, settings, DAY, dry_run=True) == (2, 150)
    assert gone.exists()
    assert await prune_records(client, settings, DAY, dry_run=False) == (2, 150)
    assert (needed.exists(), young.exists(), gone.parent.exists(), log.exists()) == (True, True, False, False)
    await running.handle.terminate("over")
    await prune_records(client, settings, DAY, dry_run=False)
    assert needed.exists()  # it can still be shown and resumed


async def test_a_schedule_prunes_and_is_listed(
    plans: Plans, client: Client, settings: Settings, environ: dict[str, str]
) -> None:
    gone = record(settings, "gone")
    printed = await command(environ, "prune", "--schedule", "1d", "--older-than", "7d", "--records", "2d", "--json")
    name = printed.json["schedule"]
    assert await schedule_prune(client, settings.task_queue, DAY, older_than=DAY, records=2 * DAY) == name
    assert name in [each.name async for each in list_schedules(client)]
    assert name in (await command(environ, "schedule", "show", name)).out
    assert (await command(environ, "schedule", "trigger", name)).code == 0

    async def is_gone() -> bool:
        return not gone.exists()

    await until(is_gone, "the schedule has removed it")
    assert (await command(environ, "schedule", "delete", name)).code == 0
    assert plans.queue == settings.task_queue


@pytest.mark.slow
async def test_what_commands_had_as_tmp_goes_with_the_end_of_their_plan(
    plans: Plans, client: Client, settings: Settings
) -> None:
    def places() -> set[str]:
        return {owner for _, owner in owned(settings.state_dir)}

    command = {"id": "c", "tool": "run_command", "args": {"command": "echo x > $TMPDIR/x"}, "requiresApproval": False}
    look = {"id": "l", "tool": "run_command", "args": {"command": "cat $TMPDIR/x"}, "requiresApproval": False,
            "dependsOn": ["c"]}  # fmt: skip
    waits = GATE | {"dependsOn": ["l"]}
    running, terminated = await plans.start([command, look, waits]), await plans.start([command, look, waits])
    for each in (running, terminated):
        await each.until_asked("gate")
    if not places():
        pytest.skip("commands have no /tmp of their own without a sandbox")
    assert places() == {running.id, terminated.id}
    await terminated.handle.terminate()
    counts = [(await prune(client, settings, dry_run=dry_run)).scratch for dry_run in (True, False, False)]
    assert counts == [1, 1, 0]
    assert places() == {running.id}
    await running.approve("gate")
    view = await running.ended()
    assert step(view, "l")["result"]["value"]["stdout"] == "x\n"

    await until(lambda: not places(), "it is removed at the end")


@pytest.mark.slow
async def test_notes_of_used_due_times_go_when_no_signature_can_count_for_them(
    client: Client, settings: Settings
) -> None:
    names = [f"plan-nightly-2025-01-0{day}T00:00:00Z" for day in (1, 2)]
    for name in names:
        assert is_first(settings.state_dir, name, "run-1")
    old, young = (settings.state_dir / USED / sha256(name.encode()).hexdigest() for name in names)
    for path, days in ((old, 368), (young, 366)):
        os.utime(path, (time.time() - days * 86_400 - 60,) * 2)
    assert (await prune(client, settings, dry_run=True)).records == 1
    assert (await prune(client, settings)).records == 1
    assert not old.exists()
    assert not is_first(settings.state_dir, names[1], "run-2")  # control: the younger one still counts

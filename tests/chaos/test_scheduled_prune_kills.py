"""kill -9 of the worker at random moments of a scheduled prune, while plans begin and wait: nothing they need goes.

Each round a worker dies while it removes stray files, among which is a value that a plan is about to want again. What
the dead prune held is put back or goes, and the schedule's run ends with the next worker.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, ScheduleActionExecutionStartWorkflow

from plansurvive.apps.schedules.upkeep import schedule_prune
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.held import read_held
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory
from tests.chaos.conftest import KILLS, Chaos
from tests.chaos.test_prune_kills import DAY, age, strays, values
from tests.kit.driving import Started, count
from tests.kit.waiting import until

PATIENCE = 180.0
"""Seconds: a worker that died is missed by the prune's heartbeat after 30."""


async def reading(chaos: Chaos, text: str, name: str) -> Started:
    """A plan that reads a big file, and waits for a person before it writes what it has read."""
    (chaos.plans.workspace / "big.txt").write_text(text)
    read = {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}
    write = {"id": "w", "tool": "write_file", "args": {"path": name, "content": "$r"}, "requiresApproval": True}
    return await chaos.plans.start([read, write])


async def left_over(chaos: Chaos, settings: Settings, text: str) -> set[Path]:
    """The old values of a plan that read this text, and that the server has no more."""
    before = values(settings)
    plan = await reading(chaos, text, "never.txt")
    await plan.until_asked("w")
    made = values(settings) - before
    await plan.handle.terminate("over")
    execution = WorkflowExecution(workflow_id=plan.id)
    await plan.client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=plan.client.namespace, workflow_execution=execution)
    )

    async def is_gone() -> bool:
        return not await count(plan.client, f"WorkflowId = '{plan.id}'")

    await until(is_gone, "the server has it no more")
    assert made
    age(*made)
    return made


async def triggered(client: Client, name: str) -> str:
    """Have the schedule start a run now; the id of its workflow."""
    handle = client.get_schedule_handle(name)
    before = len((await handle.describe()).info.recent_actions)
    await handle.trigger()

    async def begun() -> str:
        actions = (await handle.describe()).info.recent_actions
        last = actions[-1].action if len(actions) > before else None
        return last.workflow_id if isinstance(last, ScheduleActionExecutionStartWorkflow) else ""

    found: str = await until(begun, "the schedule has started its run")
    return found


def is_removing(moment: list[Path]) -> bool:
    """Whether one of these stray files is gone."""
    return not all(map(Path.exists, moment))


def is_whole(path: Path) -> bool:
    """Whether a stored value can be read, held or not, and is what its name says."""
    return hashlib.sha256(read_held(path)).hexdigest() == path.parent.name + path.name


@pytest.mark.slow
async def test_a_scheduled_prune_whose_workers_are_killed_loses_nothing_and_ends(chaos: Chaos) -> None:
    await chaos.worker.up()
    settings = Settings.read(chaos.worker.environ)
    client = await connect(settings)
    assert isinstance(storage(settings), LocalDirectory)
    waiting = await reading(chaos, "w" * 100_000, "waited.txt")
    await waiting.until_asked("w")
    needed = values(settings)
    note, gone = (settings.state_dir / "runs" / name / "note.txt" for name in (waiting.id[5:], "gone"))
    for path in (note, gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    name = await schedule_prune(client, settings.task_queue, DAY, older_than=DAY, records=DAY)
    begun, in_the_middle = list[tuple[Started, str]](), 0
    for number in range(KILLS):
        text = f"{number} " * 50_000  # no 64 digits in a row: they would refer to a stray file
        wanted = await left_over(chaos, settings, text)
        loose = strays(settings)
        age(*needed, *(path for path in (note, gone) if path.exists()))
        pruning = await triggered(client, name)
        begun.append((await reading(chaos, text, f"copy-{number}.txt"), text))
        moment = chaos.chance.sample(loose, 3 if number else 50)
        await until(partial(is_removing, moment), "it removes", every=0.0005)
        chaos.worker.kill()
        in_the_middle += any(path.exists() for path in loose)
        assert all(map(is_whole, needed))
        await chaos.worker.up()
        result = await until(partial(ended, client, pruning), "the run ends", patience=PATIENCE)
        left = [path for path in loose if path.exists()]
        assert not left, (len(left), result, left[:3])
        assert not list((settings.state_dir / "values").glob("??/.*.gone"))
        assert result["removed"] >= 0
        await begun[-1][0].until_asked("w")
        assert all(map(is_whole, needed))
        assert all(map(is_whole, wanted)), "the plan that began meanwhile refers to it"
        age(*wanted)  # from now on only its history keeps it
    assert in_the_middle, "every prune had ended before it was killed"
    assert (note.exists(), gone.exists()) == (True, False)
    await until(lambda: ended(client, pruning), "no run is left")
    for plan, text in [*begun, (waiting, "w" * 100_000)]:
        await plan.approve("w")
        assert (await plan.ended())["status"] == "completed"
        file = "waited.txt" if plan is waiting else f"copy-{text[0]}.txt"
        assert (chaos.plans.workspace / file).read_text() == text
    await client.get_schedule_handle(name).delete()


async def ended(client: Client, workflow_id: str) -> dict[str, int] | None:
    """What a run of the prune said at its end; None while it runs. Raises if it failed."""
    handle = client.get_workflow_handle(workflow_id)
    if (await handle.describe()).close_time is None:
        return None
    found: dict[str, int] = await handle.result()
    return found

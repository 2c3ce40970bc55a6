"""kill -9 of worker, server or both while a plan runs in segments: no call is lost, no effect happens twice.

Half of the calls change files: a file is created, then edited; the edit twice would show in its content. The others
append their names to a list, so that a finished one that ran again shows as well. PLANS_CHAOS_KILLS=100 kills as often.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.chaos.conftest import KILLS, Chaos
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Started, step
from tests.kit.waiting import until
from tests.workflows.quick_tools import CALLS

pytestmark = [pytest.mark.slow, pytest.mark.uses("express")]
ITEMS = max(200, 20 * KILLS)
SIDE_BY_SIDE = 4
QUICK_TOOLS = str(Path(__file__).parents[1] / "workflows/quick_tools.py")


def steps() -> list[dict[str, Any]]:
    """For each item two calls that change a file, and two that leave a trace of having run."""
    inner: list[dict[str, Any]] = [
        {"id": "create", "tool": "write_file", "args": {"path": "out/{{item}}", "content": "-a-"}},
        {"id": "first", "tool": "tick", "args": {"name": "first-{{item}}", "seconds": 0.01}, "dependsOn": ["create"]},
        {
            "id": "change",
            "tool": "edit_file",
            "args": {"path": "out/{{item}}", "oldText": "a", "newText": "aa"},
            "dependsOn": ["first"],
        },
        {"id": "last", "tool": "tick", "args": {"name": "last-{{item}}", "seconds": 0.01}, "dependsOn": ["change"]},
    ]
    return [{"id": "each", "forEach": {"items": list(range(ITEMS)), "maxParallel": SIDE_BY_SIDE}, "steps": inner}]


def ran(chaos: Chaos) -> Counter[str]:
    """How often each call of `tick` has begun."""
    path = chaos.plans.workspace / CALLS
    return Counter(path.read_text().split() if path.exists() else [])


async def killed(chaos: Chaos, environ: dict[str, str], *, keeps_journal: bool) -> Counter[str]:
    """Run the plan while processes are killed; every file must be as one run leaves it."""
    chaos.worker.environ["PLANS_TOOLS"] = f"{LEDGER_TOOLS},{QUICK_TOOLS}"
    await chaos.worker.up()
    plan = await chaos.plans.start(steps(), express=True)
    for size in sorted(chaos.chance.sample(range(5, 2 * ITEMS - 20), KILLS)):
        await until(lambda size=size: len(ran(chaos)) >= size, f"{size} calls")  # type: ignore[misc]
        victim = chaos.chance.choice(["worker", "server", "both"]) if keeps_journal else "worker"
        if victim != "server":
            chaos.worker.kill()
        if victim != "worker":
            chaos.server.kill()
            await chaos.server.up()
        if not keeps_journal:
            shutil.rmtree(Path(environ["PLANS_STATE_DIR"], "express"))
        if victim != "server":
            await chaos.worker.up()
    client = await connect(Settings.read(environ | {"TEMPORAL_ADDRESS": f"{HOST}:{chaos.server.port}"}))
    view = await Started(client, plan.id).ended()
    assert (view["status"], step(view, "each")["inside"]["counts"]) == ("completed", {"completed": ITEMS}), view["log"]
    assert {path.read_text() for path in (chaos.plans.workspace / "out").iterdir()} == {"-aa-"}
    assert len(list((chaos.plans.workspace / "out").iterdir())) == ITEMS
    names = {f"{part}-{item}" for part in ("first", "last") for item in range(ITEMS)}
    assert ran(chaos).keys() == names
    return ran(chaos)


async def test_no_call_is_lost_and_only_what_was_under_way_runs_again(chaos: Chaos, environ: dict[str, str]) -> None:
    found = await killed(chaos, environ, keeps_journal=True)
    assert sum(times - 1 for times in found.values()) <= KILLS * SIDE_BY_SIDE


async def test_control_without_the_journal_finished_calls_run_again(chaos: Chaos, environ: dict[str, str]) -> None:
    found = await killed(chaos, environ, keeps_journal=False)
    assert sum(times - 1 for times in found.values()) > KILLS * SIDE_BY_SIDE

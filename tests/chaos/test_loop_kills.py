"""kill -9 of the worker while a loop runs, and a changed list afterwards: every item's line is in the ledger once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from plansurvive.client.verbs.resume import rerun
from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from tests.chaos.conftest import KILLS, Chaos
from tests.kit.driving import Started, step
from tests.kit.waiting import until

LOOP_KILLS = max(KILLS, 3)
ITEMS = 640


def _rows(names: list[str]) -> str:
    return json.dumps([{"name": name} for name in names])


async def _loop(chaos: Chaos, names: list[str], **rule: Any) -> Started:
    """A loop over a list that is read from a file; each item writes its line exactly once, whatever dies."""
    (chaos.plans.workspace / "list.json").write_text(_rows(names))
    return await chaos.plans.start(
        [
            {"id": "list", "tool": "read_json", "args": {"path": "list.json"}},
            {
                "id": "each",
                "forEach": {"items": "list", "key": "name", "maxParallel": 16} | rule,
                "tool": "enter",
                "args": {"name": "{{item.name}}"},
            },
        ]
    )


def _lines(chaos: Chaos) -> Counter[str]:
    return Counter(line[0] for line in chaos.plans.ledger)


def _grown(chaos: Chaos, size: int) -> Callable[[], bool]:
    return lambda: len(chaos.plans.ledger) >= size


@pytest.mark.slow
async def test_a_loop_survives_workers_that_are_killed_and_reruns_only_what_is_new(
    chaos: Chaos, environ: dict[str, str]
) -> None:
    client = await connect(Settings.read(environ | {"TEMPORAL_ADDRESS": f"{HOST}:{chaos.server.port}"}))
    names = [f"item-{number}" for number in range(ITEMS)]
    await chaos.worker.up()
    plan = await _loop(chaos, names)
    for size in sorted(chaos.chance.sample(range(5, ITEMS - 20), LOOP_KILLS)):
        await until(_grown(chaos, size), f"{size} lines in the ledger")
        chaos.worker.kill()
        await chaos.worker.up()
    view = await Started(client, plan.id).ended()
    assert (view["status"], step(view, "each")["status"]) == ("completed", "completed")
    assert _lines(chaos) == Counter(names)
    changed = names[100:] + [f"new-{number}" for number in range(100)]
    (chaos.plans.workspace / "list.json").write_text(_rows(changed))
    before = _lines(chaos)
    again = Started(client, (await rerun(client, plan.id, start_at="list")).workflow_id)
    assert (await again.ended())["status"] == "completed"
    assert _lines(chaos) - before == Counter({f"new-{number}": 1 for number in range(100)})


@pytest.mark.slow
async def test_a_loop_in_child_plans_survives_workers_that_are_killed(chaos: Chaos) -> None:
    names = [f"item-{number}" for number in range(200)]
    await chaos.worker.up()
    plan = await _loop(chaos, names, mode="plans", batch=20)
    for size in sorted(chaos.chance.sample(range(5, 180), KILLS)):
        await until(_grown(chaos, size), f"{size} lines in the ledger")
        chaos.worker.kill()
        await chaos.worker.up()
    view = await plan.ended()
    assert (view["status"], step(view, "each")["inside"]["counts"]) == ("completed", {"completed": 10})
    assert _lines(chaos) == Counter(names)

"""What else a plan does while it stays with a host, or moves: many steps at once, loops, resuming, pruning."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client.verbs.resume import rerun, resume
from plansurvive.features.upkeep.prune import prune
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from tests.features.hosts.machines import Machines
from tests.kit.driving import GO, WAITS, Plans, Started, count, statuses, step, work
from tests.kit.waiting import until

pytestmark = pytest.mark.slow
FREE: dict[str, Any] = {"requiresApproval": False}


def write(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": name}, "dependsOn": [*needs],
            **more}  # fmt: skip


def moves(view: dict[str, Any]) -> list[str]:
    return [entry["text"] for entry in view["log"] if "is lost" in entry["text"]]


async def test_many_steps_at_once_move_together_and_once(machines: Machines, plans: Plans) -> None:
    names = [f"w{number}" for number in range(12)]
    steps = [write("first"), write("gate", "first", requiresApproval=True)]
    steps += [write(name, "gate") for name in names]
    async with machines.up("first"):
        plan = await plans.start(steps)
        await plan.until_asked("gate")
        await plan.signal("pause")
        await plan.approve("gate")
    async with machines.up("second"):
        await plan.signal("unpause")
        view = await plan.ended()
    assert {*statuses(view).values()} == {"completed"}
    assert len(moves(view)) == 1
    assert machines.files("second") == {f"{name}.txt": name for name in sorted(["first", "gate", *names])}


async def test_a_loop_and_continue_as_new_stay_with_the_host(machines: Machines, plans: Plans) -> None:
    loop = {"id": "each", "forEach": {"items": [str(number) for number in range(20)]}, "tool": "write_file",
            "args": {"path": "{{item}}.txt", "content": "x"}}  # fmt: skip
    async with machines.up("first"), machines.up("second"):
        plan = await plans.start([loop, write("last", "each")], {"historyLimit": 30})
        view = await plan.ended()
        runs = await plan.histories()
    assert {*statuses(view).values()} == {"completed"}, view["steps"]
    assert len(runs) > 1
    found = [machines.files(name) for name in ("first", "second")]
    assert sorted(map(len, found)) == [0, 21]


async def test_a_host_that_is_only_busy_keeps_its_plan(machines: Machines, plans: Plans) -> None:
    async with machines.up("first", max_activities=1):
        other = await plans.start([work("long", args=WAITS)])
        await until(lambda: "start long" in machines.files("first").get("ledger.txt", ""), "busy")
        plan = await plans.start([write("a")])
        await until(lambda: _pulses(plan), "the busy host was asked whether it lives")
        _go(machines, "first")
        for each in (plan, other):
            view = await each.ended()
            assert moves(view) == []
            assert {*statuses(view).values()} == {"completed"}


async def test_a_plan_is_resumed_where_its_files_are_or_from_the_last_checkpoint(
    machines: Machines, plans: Plans
) -> None:
    steps = [write("a"), work("b", "a", args={"fails": 3}, retry={"attempts": 1}), write("c", "b")]
    async with machines.up("first"), machines.up("second"):
        plan = await plans.start(steps)
        view = await plan.ended()
        assert statuses(view) == {"a": "completed", "b": "failed", "c": "blocked"}
        again = await resume(machines.client, plan.id)
        resumed = await Started(machines.client, again.workflow_id).ended()
        assert (resumed["host"], resumed["workspace"]) == (view["host"], view["workspace"])
        assert statuses(resumed)["b"] == "failed"
    other = "second" if view["host"]["name"] == "first" else "first"
    async with machines.up(other):
        third = await resume(machines.client, again.workflow_id)
        moved = await Started(machines.client, third.workflow_id).ended()
        assert moved["host"]["name"] == other
        assert statuses(moved)["b"] == "failed", "what the failed attempts left came along: they were three"
        fourth = await rerun(machines.client, third.workflow_id, start_at="b")
        done = await Started(machines.client, fourth.workflow_id).ended()
    assert statuses(done) == {"a": "completed", "b": "completed", "c": "completed"}
    assert machines.files(other)["ledger.txt"].count("start b") == 4


async def test_pruning_keeps_what_checkpoints_lead_to(settings: Settings, queue: str, tmp_path: Path) -> None:
    client = await connect(settings)
    machines, plans = Machines(client, settings, tmp_path), Plans(client, queue, tmp_path)
    async with machines.up("first"):
        plan = await plans.start([write("a"), write("b", "a"), write("gate", "b", requiresApproval=True)])
        await plan.until_asked("gate")
    await until(lambda: count(client, f"WorkflowId = '{plan.id}'"), "the run is listed")
    values = settings.state_dir / "values"
    stored = [path for path in values.rglob("*") if path.is_file()]
    assert len(stored) >= 6, "a pack, a list and a root for each checkpoint"
    for path in stored:
        os.utime(path, (time.time() - 200_000,) * 2)
    found = await prune(client, settings, older_than=timedelta(days=1))
    assert found.removed == 0
    async with machines.up("second"):
        await plan.approve("gate")
        view = await plan.ended()
    assert statuses(view) == {"a": "completed", "b": "completed", "gate": "completed"}
    assert step(view, "gate")["status"] == "completed"
    assert machines.files("second") == {"a.txt": "a", "b.txt": "b", "gate.txt": "gate"}


async def _pulses(plan: Started) -> bool:
    return any(each.activity_type.name == "host_pulse" for each in (await plan.scheduled()).values())


def _go(machines: Machines, name: str) -> None:
    for path in (machines.folder / name / "workspace").iterdir():
        (path / GO).write_text("")

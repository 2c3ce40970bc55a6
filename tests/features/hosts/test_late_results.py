"""A result that comes from the old host while the plan moves: what counts as completed is in the files that move."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.hosts.in_worker import queues_of_host
from plansurvive.worker import build
from tests.features.hosts.machines import Machines
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import GO, WAITS, Plans, Started, statuses, step, work
from tests.kit.waiting import connected, until

pytestmark = pytest.mark.slow


async def test_a_step_that_ends_at_the_old_host_while_the_plan_moves_keeps_its_files(
    machines: Machines, plans: Plans
) -> None:
    gate: dict[str, Any] = {"id": "gate", "tool": "write_file", "args": {"path": "gate.txt", "content": "x"},
                            "dependsOn": ["a"], "requiresApproval": True}  # fmt: skip
    settings, tools = machines.settings_of("first", max_activities=1), load_tools([LEDGER_TOOLS])
    address = machines.client.service_client.config.target_host
    client = await connected(address, data_converter=machines.client.data_converter)
    steps, _ = queues_of_host(settings, settings.task_queue)
    async with build(client, settings, tools, indexed=True, workflows=(), polls=steps):
        async with machines.up_without_steps("first"):
            plan = await plans.start([work("a"), work("b", "a", args=WAITS), gate])
            await until(lambda: "start b" in machines.files("first").get("ledger.txt", ""), "b runs")
            await plan.until_asked("gate")
        async with build(machines.client, machines.settings, tools, indexed=True):  # no place for files
            await plan.approve("gate")
            await until(lambda: _moving(plan), "another place is asked for")
            for path in (machines.folder / "first" / "workspace").iterdir():
                (path / GO).write_text("")
            await until(lambda: _ended(plan, "b"), "b ended at the old host")
            async with machines.up("second"):
                view = await plan.ended()
    assert {*statuses(view).values()} == {"completed"}
    assert machines.files("second")["ledger.txt"].count("end b") == 1, machines.files("second")


async def _moving(plan: Started) -> bool:
    names = [each.activity_type.name for each in (await plan.scheduled()).values()]
    return names.count("take_host") == 2


async def _ended(plan: Started, name: str) -> bool:
    return bool(step(await plan.handle.query("plan"), name)["status"] == "completed")


async def test_a_failure_at_the_old_host_counts_no_more_than_a_result_there(machines: Machines, plans: Plans) -> None:
    """Its directory may be gone, or have been restored to from before: the step is called again where the files are."""
    waits = "touch begun; while [ ! -e go.txt ]; do sleep 0.05; done; test -e good.txt"
    slow = {"id": "b", "tool": "run_command", "args": {"command": waits}, "requiresApproval": False, "dependsOn": ["a"]}
    gate = {"id": "gate", "tool": "write_file", "args": {"path": "gate.txt", "content": "x"}, "dependsOn": ["a"],
            "requiresApproval": True}  # fmt: skip
    async with machines.only_steps("first"):
        async with machines.up_without_steps("first"):
            plan = await plans.start([work("a"), slow, gate])
            await until(lambda: "begun" in machines.files("first"), "b runs")
            await plan.until_asked("gate")
        async with machines.up("second"):
            await plan.approve("gate")
            await plan.until_logged("warning", "is lost")
            for path in (machines.folder / "first" / "workspace").iterdir():
                (path / GO).write_text("")
            await until(lambda: "begun" in machines.files("second"), "it is called again where the files are")
            for path in (machines.folder / "second" / "workspace").iterdir():
                (path / "good.txt").write_text("")
                (path / GO).write_text("")
            view = await plan.ended()
    assert {*statuses(view).values()} == {"completed"}, [each.get("result") for each in view["steps"]]

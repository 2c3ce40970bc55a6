"""Plans of workers with a workspace each, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from plansurvive.runtime.settings import Settings
from tests.features.hosts.machines import Machines
from tests.kit.driving import GO, LEDGER, WAITS, Plans, Started, step, work
from tests.kit.waiting import until

Scenario = Callable[[Plans], Awaitable[Started]]
QUEUE = "replay-hosts"
ROOT = Path(__file__).parent.parent.parent
OPEN: dict[str, Any] = {"requiresApproval": False}


def _steps() -> list[dict[str, Any]]:
    return [
        {"id": "a", "tool": "write_file", "args": {"path": "a.txt", "content": "one"}, **OPEN},
        {"id": "gate", "tool": "write_file", "args": {"path": "b.txt", "content": "two"}, "dependsOn": ["a"],
         "requiresApproval": True, "repeatable": False},
        {"id": "bad", "tool": "read_file", "args": {"path": "none"}, "dependsOn": ["gate"], **OPEN},
        {"id": "last", "tool": "list_directory", "args": {"path": "."}, "dependsOn": ["gate"], **OPEN},
    ]  # fmt: skip


def _machines(plans: Plans) -> Machines:
    folder = plans.workspace.resolve()
    environ = {"HOME": str(folder), "PLANS_STATE_DIR": str(folder / "state"), "PLANS_TASK_QUEUE": QUEUE}
    return Machines(plans.client, Settings.read(environ), folder)


async def moved(plans: Plans) -> Started:
    """A host that is lost before an approved step, and another one that takes over."""
    machines = _machines(plans)
    async with machines.up("first"):
        started = await Plans(plans.client, QUEUE, plans.workspace).start(_steps())
        await started.until_asked("gate")
    async with machines.up("second"):
        await started.approve("gate")
        await started.ended()
        return started


async def _moved_with_children(plans: Plans) -> tuple[Started, Started]:
    """A plan and its child plan, whose host is lost before a step that the child has approved."""
    machines = _machines(plans)
    inner = [
        {"id": "b", "tool": "write_file", "args": {"path": "c.txt", "content": "one"}, **OPEN},
        {"id": "gate", "tool": "write_file", "args": {"path": "d.txt", "content": "two"}, "dependsOn": ["b"],
         "requiresApproval": True},
    ]  # fmt: skip
    async with machines.up("first"):
        started = await Plans(plans.client, QUEUE, plans.workspace).start(
            [_steps()[0], {"id": "inner", "tool": "plan", "args": {"steps": inner}, "dependsOn": ["a"]}]
        )
        view = await started.until(lambda view: (step(view, "inner").get("child") or {}).get("planId"), "it has begun")
        child = Started(started.client, f"plan-{step(view, 'inner')['child']['planId']}")
        await child.until_asked("gate")
    async with machines.up("second"):
        await child.approve("gate")
        await started.ended()
        return started, child


async def with_child(plans: Plans) -> Started:
    """The plan."""
    return (await _moved_with_children(plans))[0]


async def of_child(plans: Plans) -> Started:
    """Its child plan."""
    return (await _moved_with_children(plans))[1]


async def late(plans: Plans) -> Started:
    """A step that ends at the lost host while its files are being restored at another one."""
    machines, gate = _machines(plans), {**_steps()[1], "repeatable": True}
    async with machines.only_steps("first"):
        async with machines.up_without_steps("first"):
            started = await Plans(plans.client, QUEUE, plans.workspace).start(
                [work("a"), work("b", "a", args=WAITS), gate]
            )
            await until(lambda: "start b" in machines.files("first").get("ledger.txt", ""), "b runs")
            await started.until_asked("gate")
        async with machines.up_without_files():
            await started.approve("gate")
            await until(lambda: _moving(started), "another place is asked for")
            for path in (machines.folder / "first" / "workspace").iterdir():
                (path / GO).write_text("")
            await started.until_status("b", "completed")
            async with machines.up("second"):
                await started.ended()
                return started


async def segment_late(plans: Plans) -> Started:
    """A segment that ends at the lost host, after the files have been moved for the sake of a step beside it."""
    machines = _machines(plans)
    machines.tools.append(str(ROOT / "tests/workflows/quick_tools.py"))
    go = {"id": "go", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["a"]}
    again = tick("again", "go", fails=1) | {"retry": {"attempts": 3, "delay": 0.01}, "express": False}
    chain = [tick(f"t{i}", f"t{i - 1}" if i else "go", seconds=1.0) for i in range(9)]
    async with machines.only_steps("first", 2):
        async with machines.up_without_steps("first"):
            started = await Plans(plans.client, QUEUE, plans.workspace).start(
                [_steps()[0], go, work("holds", "go", args=WAITS), again, *chain], express={"seconds": 10}
            )
            await started.until_status("a", "completed")
        async with machines.up("second"):
            await started.signal("event", {"name": "go", "data": {}})
            await until(lambda: _moving(started), "another place is asked for")
            for host in ("first", "second"):
                await until(lambda host=host: LEDGER in machines.files(host), f"it is called at {host}")  # type: ignore[misc]
                for path in (machines.folder / host / "workspace").iterdir():
                    (path / GO).write_text("")
            await started.until_logged("warning", "have moved")
            await started.ended()
            return started


def tick(name: str, *needs: str, **args: Any) -> dict[str, Any]:
    """A quick step."""
    return {"id": name, "tool": "tick", "args": {"name": name, **args}, "dependsOn": [*needs]}


async def _moving(plan: Started) -> bool:
    asked = [each for each in (await plan.scheduled()).values() if each.activity_type.name == "take_host"]
    return len(asked) > 1


HOSTS: dict[str, Scenario] = {
    "host-moved": moved, "host-moved-with-child": with_child, "host-moved-as-child": of_child, "host-left-late": late,
    "express-left-late": segment_late,
}  # fmt: skip

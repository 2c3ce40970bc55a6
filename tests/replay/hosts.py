"""Plans of workers with a workspace each, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from runtime.settings import Settings
from tests.driving import Plans, Started
from tests.hosts.machines import Machines

Scenario = Callable[[Plans], Awaitable[Started]]
QUEUE = "replay-hosts"
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


HOSTS: dict[str, Scenario] = {"host-moved": moved}

"""Workers with a workspace each: a plan stays with one host, and its files move to another when that is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.tools.registry import load_tools
from client.undo.files import file_changes
from runtime.settings import Settings
from tests.driving import Plans, statuses
from worker import build, of_host

FREE: dict[str, Any] = {"requiresApproval": False}


@dataclass
class Machines:
    """Hosts with a workspace and a state directory each, on one server with one storage."""

    client: Client
    settings: Settings
    folder: Path

    def settings_of(self, name: str, **more: Any) -> Settings:
        for each in ("state", "workspace"):
            (self.folder / name / each).mkdir(parents=True, exist_ok=True)
        return self.settings.with_flags(
            host=name, state_dir=self.folder / name / "state", workspace=self.folder / name / "workspace",
            host_patience=1.0, grace=0.0, **more,
        )  # fmt: skip

    @asynccontextmanager
    async def up(self, name: str, **more: Any) -> AsyncIterator[None]:
        """The workers of a host."""
        settings, tools = self.settings_of(name, **more), load_tools(())
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(build(self.client, settings, tools, indexed=True))
            for queue in of_host(settings):
                worker = build(self.client, settings, tools, indexed=True, workflows=(), polls=queue)
                await stack.enter_async_context(worker)
            yield

    def files(self, name: str) -> dict[str, str]:
        """What a host's workspace holds, with directories named without what is unique about them."""
        root = self.folder / name / "workspace"
        found = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {"/".join(path.relative_to(root).parts[1:]): path.read_text() for path in found}


@pytest.fixture
def machines(temporal_client: Client, settings: Settings, tmp_path: Path) -> Machines:
    return Machines(temporal_client, settings, tmp_path)


@pytest.fixture
def plans(temporal_client: Client, queue: str, tmp_path: Path) -> Plans:
    return Plans(temporal_client, queue, tmp_path)


def write(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": text}, "dependsOn": [*needs],
            **more}  # fmt: skip


async def test_a_plan_whose_host_is_lost_ends_at_another_with_the_same_files(machines: Machines, plans: Plans) -> None:
    steps = [
        write("a", "one\n"),
        {"id": "run", "tool": "run_command", "args": {"command": "mkdir d; cat a.txt > d/b; ln -s d/b c"},
         "dependsOn": ["a"], **FREE},
        write("gate", "two\n", "run", requiresApproval=True),
        {"id": "edit", "tool": "edit_file", "args": {"path": "a.txt", "oldText": "one", "newText": "three"},
         "dependsOn": ["gate"], **FREE},
    ]  # fmt: skip
    async with machines.up("first"):
        plan = await plans.start(steps)
        await plan.until_asked("gate")
        assert machines.files("first") == {"a.txt": "one\n", "d/b": "one\n", "c": "one\n"}
    async with machines.up("second"):
        await plan.approve("gate")
        view = await plan.ended()
        changed = await file_changes(machines.client, plan.id)
    assert set(statuses(view).values()) == {"completed"}, view["steps"]
    files = {"a.txt": "three\n", "d/b": "one\n", "c": "one\n", "gate.txt": "two\n"}
    assert machines.files("second") == files
    assert [(call.step_id, [each.path for each in call.changes]) for call in changed.calls if call.step_id != "run"] == [
        ("a", ["a.txt"]), ("gate", ["gate.txt"]), ("edit", ["a.txt"]),
    ], "what file tools did at the first host is known at the second"  # fmt: skip
    lost = [entry for entry in view["log"] if "is lost" in entry["text"]]
    assert [(entry["stepId"], entry["kind"]) for entry in lost] == [("gate", "warning")]
    assert view["workspace"].startswith(str(machines.folder / "second"))

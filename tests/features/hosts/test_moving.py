"""Workers with a workspace each: a plan stays with one host, and its files move to another when that is lost."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.client.listing import listed_by
from plansurvive.features.files.verbs import file_changes
from tests.features.hosts.machines import Machines
from tests.kit.driving import Plans, statuses
from tests.kit.waiting import until

FREE: dict[str, Any] = {"requiresApproval": False}


def write(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": text}, "dependsOn": [*needs],
            **more}  # fmt: skip


async def listed_host(client: Client, workflow_id: str, name: str) -> bool:
    """Whether the list of plans shows this host for a plan."""
    query = f"WorkflowId = '{workflow_id}'"
    return [each.host async for each in listed_by(client, query)] == [name]


@pytest.mark.slow
@pytest.mark.sampled
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
        await until(lambda: listed_host(machines.client, plan.id, "first"), "the list names its host")
    async with machines.up("second"):
        await plan.approve("gate")
        view = await plan.ended()
        changed = await file_changes(machines.client, plan.id)
        await until(lambda: listed_host(machines.client, plan.id, "second"), "the list names the host it moved to")
        brief = await plan.handle.query("plan", {"brief": True})
    assert (brief["host"]["name"], view["host"]["name"]) == ("second", "second")
    assert set(statuses(view).values()) == {"completed"}, view["steps"]
    files = {"a.txt": "three\n", "d/b": "one\n", "c": "one\n", "gate.txt": "two\n"}
    assert machines.files("second") == files
    known = [(each.step_id, each.changes[0].path) for each in changed.calls if each.step_id != "run"]
    assert known == [("a", "a.txt"), ("gate", "gate.txt"), ("edit", "a.txt")], "those of the first host as well"
    lost = [entry for entry in view["log"] if "is lost" in entry["text"]]
    assert [(entry["stepId"], entry["kind"]) for entry in lost] == [("gate", "warning")]
    assert view["workspace"].startswith(str(machines.folder / "second"))

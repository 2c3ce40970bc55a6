"""Files that are deleted while a plan knows them: by hand, by its own steps, and between interrupt and resume."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.verbs import resume
from tests.kit.driving import Plans, Started, step

pytestmark = pytest.mark.modes("plain")

READ: dict[str, Any] = {"id": "read", "tool": "read_file", "args": {"path": "d/x"}}
EDIT: dict[str, Any] = {
    "id": "edit",
    "tool": "edit_file",
    "args": {"path": "d/x", "oldText": "one", "newText": "two"},
    "requiresApproval": True,
}


def made(plans: Plans) -> None:
    (plans.workspace / "d").mkdir()
    (plans.workspace / "d/x").write_text("one")


@pytest.mark.parametrize(("tool", "args"), [("run_command", {"command": "rm -r d"}), ("delete_file", {"path": "d/x"})])
async def test_an_edit_of_a_file_that_another_step_deleted_says_so(
    plans: Plans, tool: str, args: dict[str, Any]
) -> None:
    made(plans)
    delete = {"id": "delete", "tool": tool, "args": args, "dependsOn": ["read"], "requiresApproval": False}
    edit = {**EDIT, "dependsOn": ["delete"], "requiresApproval": False}
    result = step(await (await plans.start([READ, delete, edit])).ended(), "edit")["result"]
    assert result["code"] == "CONFLICT"
    assert "was deleted since it was read, by a step of this run" in result["error"]


async def test_after_a_conflict_a_plan_that_reads_again_may_make_the_deleted_file_again(plans: Plans) -> None:
    """Each step waits for its turn at an approval: a failed step blocks what depends on it."""
    made(plans)
    content: dict[str, Any] = {"path": "d/x", "content": "new"}
    write = {"id": "write", "tool": "write_file", "args": content, "requiresApproval": True}
    again = {**READ, "id": "again", "requiresApproval": True}
    started = await plans.start([READ, EDIT, {**write, "id": "early"}, again, write])
    await started.until_status("read", "completed")
    (plans.workspace / "d/x").unlink()
    for name in ("edit", "early", "again", "write"):
        await started.until_asked(name)
        await started.approve(name)
        view = await started.until_status(name, "completed", "failed")
    assert "was deleted since it was read." in step(view, "edit")["result"]["error"]
    assert step(view, "early")["result"]["code"] == "CONFLICT"
    assert (step(view, "again")["result"]["code"], "deleted" in step(view, "again")) == ("NOT_FOUND", False)
    assert (step(view, "write")["status"], (plans.workspace / "d/x").read_text()) == ("completed", "new")


async def test_a_file_deleted_between_interrupt_and_resume_is_not_edited(plans: Plans) -> None:
    made(plans)
    started = await plans.start([READ, {**EDIT, "dependsOn": ["read"]}])
    await started.until_asked("edit")
    await started.signal("interrupt", {})
    await started.ended()
    (plans.workspace / "d/x").unlink()
    resumed = Started(plans.client, (await resume.resume(plans.client, started.id, "ann")).workflow_id)
    await resumed.until_asked("edit")
    await resumed.approve("edit")
    result = step(await resumed.ended(), "edit")["result"]
    assert (result["code"], "'d/x' was deleted since it was read." in result["error"]) == ("CONFLICT", True)
    assert not (plans.workspace / "d/x").exists()

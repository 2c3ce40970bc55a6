"""What was approved for a directory is done in that directory, or not at all, on the real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from plansurvive.client.verbs.resume import resume
from tests.kit.driving import Plans, Started, statuses, step
from tests.kit.lacking import require_sandbox
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.uses("children")

SWAPS = {
    "a link": 'mv sub away && ln -s "$PWD/other" sub',
    "a rename": "mv sub away && mv other sub",
    "a new directory": "mv sub away && mkdir sub",
}
READS = {"command": "cat private.txt; echo x > pwned.txt", "allowFailure": True}


def steps() -> list[dict[str, Any]]:
    """A file tool that needs nobody, then what a person approves: a command, and a file tool."""
    return [
        {"id": "before", "tool": "write_file", "args": {"path": "mine.txt", "content": "a"}},
        {"id": "r", "tool": "run_command", "args": READS, "dependsOn": ["before"]},
        {"id": "w", "tool": "write_file", "args": {"path": "pwned2.txt", "content": "x"}, "requiresApproval": True,
         "dependsOn": ["before"]},
    ]  # fmt: skip


def ground(workspace: Path) -> Path:
    """A workspace inside another one, beside a directory with something private. Returns the inner one."""
    for name in ("sub", "other"):
        (workspace / name).mkdir()
    (workspace / "other" / "private.txt").write_text("CANARY")
    return workspace / "sub"


async def swapped(plans: Plans, way: str) -> None:
    """Another plan's command replaces the inner workspace."""
    command = {"id": "s", "tool": "run_command", "args": {"command": SWAPS[way]}, "requiresApproval": False}
    assert statuses(await plans.run([command])) == {"s": "completed"}


async def problems(plan: Started) -> list[str]:
    """The codes of the problems that a plan was refused with."""
    with pytest.raises(WorkflowFailureError) as caught:
        await plan.handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return [each["code"] for each in caught.value.cause.details[0]]


@pytest.mark.parametrize("way", SWAPS)
@pytest.mark.parametrize("level", ["off", "bwrap"])
async def test_an_approved_call_does_not_follow_its_path_to_another_directory(
    make_worker: MakeWorker, idle: Plans, temporal_client: Client, workspace: Path, level: str, way: str
) -> None:
    if level != "off":
        require_sandbox(level)
    sub = ground(workspace)
    async with make_worker(sandbox=level):
        plan = await idle.start(steps(), {"workspace": str(sub)})
        for name in ("r", "w"):
            await plan.until_asked(name)
        await swapped(idle, way)
        for name in ("r", "w"):
            await plan.approve(name)
        view = await plan.ended()
        for name in ("r", "w"):
            result = step(view, name)["result"]
            assert (result["code"], result.get("attempts", 1)) == ("WORKSPACE_MOVED", 1), result
            assert f"plan resume {plan.id.removeprefix('plan-')} --workspace {sub}" in result["error"]
        assert "CANARY" not in str(view)
        assert not [*workspace.rglob("pwned*")]

        # A resumed plan is not led there either, unless a person names the directory
        again = await resume(temporal_client, plan.id)
        assert await problems(Started(temporal_client, again.workflow_id)) == ["WORKSPACE_MOVED"]
        named = Started(temporal_client, (await resume(temporal_client, again.plan_id, workspace=str(sub))).workflow_id)
        for name in ("r", "w"):
            await named.until_asked(name)
            await named.approve(name)
        assert set(statuses(await named.ended()).values()) == {"completed"}
        assert len([*workspace.rglob("pwned*")]) == 2


async def test_a_directory_that_was_moved_and_put_back_is_the_same(
    make_worker: MakeWorker, idle: Plans, workspace: Path
) -> None:
    sub = ground(workspace)
    async with make_worker():
        plan = await idle.start(steps(), {"workspace": str(sub)})
        for name in ("r", "w"):
            await plan.until_asked(name)
        sub.rename(workspace / "away")
        (workspace / "away").rename(sub)
    async with make_worker():  # another worker knows it as well
        for name in ("r", "w"):
            await plan.approve(name)
        assert set(statuses(await plan.ended()).values()) == {"completed"}


@pytest.mark.parametrize("way", ["a link", "a rename"])
async def test_children_and_agents_do_not_take_another_directory_for_their_parents(
    plans: Plans, workspace: Path, way: str
) -> None:
    sub = ground(workspace)
    inner = [{"id": "i", "tool": "write_file", "args": {"path": "pwned.txt", "content": "x"}}]
    child = {"id": "c", "tool": "plan", "args": {"steps": inner}, "requiresApproval": True}
    agent = {"id": "a", "tool": "agent", "args": {"objective": "write"}, "requiresApproval": True}
    plan = await plans.start([child, agent], {"workspace": str(sub)})
    for name in ("c", "a"):
        await plan.until_asked(name)
    await swapped(plans, way)
    for name in ("c", "a"):
        await plan.approve(name)
    view = await plan.ended()
    assert all("WORKSPACE_MOVED" in str(step(view, name)["result"]) for name in ("c", "a")), view["steps"]
    assert not [*workspace.rglob("pwned*")]

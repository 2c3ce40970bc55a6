"""Three coding agents on one repository, two of them on the same lines: merged by a person in a browser, and undone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser
from temporalio.client import Client

from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.runtime.settings import Settings
from tests.apps.web.browser import DESK, PHONE, everywhere, opened, watch
from tests.apps.web.decisions.conftest import Ask
from tests.apps.web.decisions.test_browser import at, page_at
from tests.client.cli.command import plan as command
from tests.features.coding_agents.scene import PROGRAM
from tests.features.worktrees.repositories import git, made
from tests.kit.waiting import until

__all__ = ["page_at"]
LINES = "".join(f"line {number}\n" for number in range(1, 9))
WORK: dict[str, list[tuple[str, str]]] = {
    "red": [("a.txt", LINES.replace("line 2", "line 2, by red"))],
    "green": [("a.txt", LINES.replace("line 7", "line 7, by green"))],
    "blue": [("a.txt", LINES.replace("line 2", "line two, by blue")), ("b.txt", "made by blue\n")],
}


@pytest.fixture
def agents(settings: Settings, tmp_path: Path) -> None:
    """An agent of each name, which writes what its script says."""
    tables = []
    for name, files in WORK.items():
        script, home = tmp_path / f"{name}.json", tmp_path / f"home-{name}"
        home.mkdir()
        actions: list[dict[str, Any]] = [{"make": path, "content": text} for path, text in files]
        spent = {"tokens": 10 * len(json.dumps(actions))}
        script.write_text(json.dumps({"prompts": [[*actions, spent, {"say": "Done."}]]}))
        command = [sys.executable, "-I", "-S", str(PROGRAM), str(script)]
        rows = {"command": command, "home": str(home), "read": [str(PROGRAM), str(script)], "approve": "never"}
        tables += [f"[agents.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in rows.items())]
    file = settings.state_dir / "agents.toml"
    file.write_text("\n".join(tables) + "\n")
    file.chmod(0o600)


def code(name: str) -> dict[str, Any]:
    """A step in a worktree, on which an agent works."""
    args = {"agent": name, "prompt": f"Do the work of {name}."}
    return {"id": name, "tool": "coding_agent", "args": args, "worktree": True, "description": f"Work of {name}"}


@pytest.mark.slow
@pytest.mark.usefixtures("agents")
async def test_a_conflict_of_three_agents_is_resolved_in_a_browser_and_undone(
    ask: Ask, page_at: str, chromium: Browser, workspace: Path, temporal_client: Client,
    environ: dict[str, str],
) -> None:  # fmt: skip
    made(workspace, a=LINES)
    merge = {"id": "merge", "tool": "merge_worktrees", "args": {"steps": list(WORK)}, "dependsOn": list(WORK)}
    plan = await ask(merge, *map(code, WORK), title="Three agents")
    await runs.approve(temporal_client, plan, runs.Choice(step_id="merge", by="ann"))

    async def asks() -> bool:
        return any(item.is_question for item in (await runs.show(temporal_client, plan)).pending)

    await until(asks, "the merge asks about the conflict")
    async with opened(chromium, DESK) as page:
        watched = watch(page)
        await at(page, page_at, decision_url(plan, "merge"))
        text = await page.locator("main").inner_text()
        for version in ("| line 2\n", "| line 2, by red\n", "| line two, by blue"):
            assert version in text
        assert await everywhere(page, "conflict") == []
        assert watched.foreign(page_at) == []
    async with opened(chromium, PHONE) as page:
        await at(page, page_at, decision_url(plan, "merge"))
        await page.get_by_label("the lines entered below, or none").check()
        await page.get_by_label("a.txt:2 other").fill("line 2, by red and blue")
        await page.get_by_role("button", name="Answer merge").click()
        await page.wait_for_url(f"{page_at}/plans/{plan}")
    assert (await runs.wait(temporal_client, plan)).is_completed
    merged = LINES.replace("line 2", "line 2, by red and blue").replace("line 7", "line 7, by green")
    assert (workspace / "a.txt").read_text() == merged
    subjects = ["Work of blue", "Work of green", "Work of red", "first"]
    assert git(workspace, "log", "--format=%s").split("\n") == subjects
    trailers = git(workspace, "log", "--format=%(trailers:key=Step,valueonly)").split()
    assert trailers == ["blue", "green", "red"]

    looks = {"cost": f"/plans/{plan}/cost", "step": f"/plans/{plan}/steps/red", "agent": f"/plans/agent-{plan}-red"}
    async with opened(chromium, PHONE) as page:
        for name, path in looks.items():
            await at(page, page_at, path)
            if name == "cost":
                await page.get_by_role("link", name=f"agent-{plan}-red").wait_for()
            assert "1.06 USD" in await page.locator("main").inner_text(), name
            assert await everywhere(page, name) == []

    shown = await command(environ, "undo", plan, "--dry-run")
    assert "would call revert_merge" in shown.out
    done = await command(environ, "undo", plan, "--yes")
    assert done.code == 0, done.err
    assert (workspace / "a.txt").read_text() == LINES
    assert not (workspace / "b.txt").exists()
    assert git(workspace, "status", "--porcelain") == ""
    reverts = [f'Revert "{each}"' for each in reversed(subjects[:3])]
    assert git(workspace, "log", "--format=%s").split("\n") == [*reverts, *subjects]
    assert (await command(environ, "undo", plan)).err.startswith(f"Nothing to undo: `plan undo {plan}` undid it, ")

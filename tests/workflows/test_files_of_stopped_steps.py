"""What a step had changed until it was stopped is told in every view: `plan show`, JSON, page, `plan files`, `undo`.

Whatever stops it: a cancellation, its own failure, its timeout, that of its plan; as a step, an item, a step of a child
plan, a call of an agent. The commands write nothing else than files: output alone was always told.
"""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from plansurvive.client import runs
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing, service_for
from tests.kit.driving import Plans, Started
from tests.kit.waiting import until
from tests.workflows.agents import Agents, call, says, serving
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.modes("plain"), pytest.mark.uses("children")]

WRITES = "echo new > made.txt; echo more >> old.txt; rm gone.txt; touch began"
"""What is changed before the step is stopped."""
LASTS = f"{WRITES}; sleep 300"
MADE, GONE = {"made.txt", "old.txt", "began"}, {"gone.txt"}
AGENT = {"id": "ag", "tool": "agent", "args": {"objective": "Work."}}


def command(name: str, text: str, **more: Any) -> dict[str, Any]:
    args = {"command": text}
    return {
        "id": name,
        "tool": "run_command",
        "args": args,
        "requiresApproval": False,
        "retry": {"attempts": 1},
        **more,
    }


async def cancelled(plan: Started) -> None:
    await runs.cancel(plan.client, plan.id)


async def agent_cancelled(plan: Started) -> None:
    await runs.cancel(plan.client, _agent(plan))


async def untouched(plan: Started) -> None:
    """It ends by itself."""


def _agent(plan: Started) -> str:
    return f"agent-{plan.id.removeprefix('plan-')}-ag"


Stop = Callable[[Started], Any]
STOPPED: dict[str, tuple[dict[str, Any], Stop, dict[str, Any]]] = {
    "cancelled": (command("a", LASTS), cancelled, {}),
    "failed": (command("a", f"{WRITES}; exit 3"), untouched, {}),
    "timed out": (command("a", LASTS, timeout=3), untouched, {}),
    "out of the plan's time": (command("a", LASTS), untouched, {"timeout": 5}),
    "an item cancelled": (command("a", LASTS, forEach={"items": ["x"], "key": "@"}), cancelled, {}),
    "in a child plan": ({"id": "a", "tool": "plan", "args": {"steps": [command("b", LASTS)]}}, cancelled, {}),
    "a call of an agent": (AGENT, cancelled, {}),
    "a call of an agent cancelled by itself": (AGENT, agent_cancelled, {}),
}  # fmt: skip


@pytest_asyncio.fixture
async def agents(idle: Plans, make_worker: MakeWorker) -> AsyncIterator[Agents]:
    whole = partial(make_worker, undo="full")  # the content of files that no step has read is kept as well
    async with serving(idle, whole)([says({"tool_calls": [call("run_command", command=LASTS)]})]) as served:
        yield served


@pytest.mark.parametrize("how", STOPPED)
async def test_what_a_step_had_changed_until_it_was_stopped_is_in_every_view(
    agents: Agents, settings: Settings, how: str
) -> None:
    only, stop, more = STOPPED[how]
    plan = await stopped(agents.plans, only, stop, more)
    view = await plan.ended()
    assert view["status"] != "completed"
    # 1. JSON and the text of `plan show`.
    assert set(view["step_files"]["0"]) == MADE, (view["steps"], view["log"])
    assert "inside" in view["steps"][0] or view["steps"][0]["deleted"] == [*GONE]
    rows = [row.strip() for row in (await runs.text(plan.client, plan.id, detailed=True)).splitlines()]
    assert {"Files: began, made.txt, old.txt", "Deleted: gone.txt"} <= set(rows), rows
    if how.startswith("a call of an agent"):
        child = await Started(plan.client, _agent(plan)).view()
        assert set(child["step_files"]["0"]) == MADE
    # 2. `plan files`, with what kind of change.
    report = await runs.file_changes(plan.client, plan.id)
    changes = {change.path: change.kind for each in report.calls for change in each.changes}
    assert changes == {"made.txt": "created", "began": "created", "old.txt": "changed", "gone.txt": "deleted"}
    # 3. The web page: of the step, and of the plan with diffs.
    async with browsing(service_for(settings, plan.client)) as browser:
        name = plan.id.removeprefix("plan-")
        step_id = only["id"] + ("[x]" if "forEach" in only else "")
        shown = await listed(browser, f"/plans/{name}/steps/{step_id}")
        assert shown >= MADE | {f"{path} deleted" for path in GONE}, shown
        shown = await listed(browser, f"/plans/{name}/files?now=1")
        marks = {"began": "+", "made.txt": "+", "old.txt": "~", "gone.txt": "-"}
        assert shown >= {f"{mark} {path}" for path, mark in marks.items()}, shown
    # 4. `plan undo` takes it back.
    undone = await runs.undo(plan.client, plan.id)
    assert {each.path for each in undone.restored if each.done} == MADE | GONE, undone
    assert {path.name for path in agents.plans.workspace.iterdir()} == {"old.txt", "gone.txt"}
    assert (agents.plans.workspace / "old.txt").read_text() == "before\n"


async def stopped(plans: Plans, only: dict[str, Any], stop: Stop, more: dict[str, Any]) -> Started:
    """A plan that was stopped after its command had changed the files: given more time, where a machine is too slow."""
    began = plans.workspace / "began"
    for factor in (1, 5, 25):
        fill(plans.workspace)
        plan = await plans.start([longer(only, factor)], {"approveAll": True}, **longer(more, factor))

        async def is_over() -> bool:
            return began.exists() or (await plan.view())["status"] in {"failed", "partial"}  # noqa: B023 -- awaited here

        await until(is_over, "the command has changed the files, or its time is over")
        if began.exists():
            await stop(plan)
            return plan
    raise AssertionError("the command did not come to its end in its time")


def longer(of: dict[str, Any], factor: int) -> dict[str, Any]:
    """The same with a longer time limit, if it has one."""
    return of | {name: of[name] * factor for name in of if name == "timeout"}


def fill(workspace: Path) -> None:
    """Let the workspace hold what the command finds."""
    (workspace / "made.txt").unlink(missing_ok=True)
    for name in ("old.txt", "gone.txt"):
        (workspace / name).write_text("before\n")


async def listed(browser: httpx.AsyncClient, url: str) -> set[str]:
    """The texts of a page between its tags, and such texts with what follows them, without needless spaces."""
    answer = await browser.get(url)
    assert answer.status_code == 200, answer.text
    texts = [" ".join(html.unescape(each).split()) for each in re.split(r"<[^>]*>", answer.text)]
    texts = [each for each in texts if each]
    return {*texts, *(f"{one} {other}" for one, other in pairwise(texts))}

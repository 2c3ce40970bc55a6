"""Every page about a plan, in every state of the plan and of its steps: each is shown, and none by way of an error."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from plansurvive.plans.run import ENDED, PlanStatus, Run, Status
from plansurvive.runtime.settings import Settings
from tests.apps.web.decisions.page import Page
from tests.apps.web.page_client import browsing, service_for
from tests.client.test_every_view import AWAITED, CHILD, snapshots
from tests.kit.shown import Shown, shown
from tests.nightly import sampled

PLAN = (
    "",
    "/list",
    "/decisions",
    "/gantt",
    "/files",
    "/changes",
    "/cost",
    "/logs",
    "/draft",
    "/draft/add?tool=run_command",
    "/event",
)


def steps_of(run: Run) -> dict[str, str]:
    """One step of each kind: by itself or inside something, one that closes the plan; its id, by that."""
    nodes = run.outline.nodes.values()
    return {f"{node.kind} {node.parent is None} {run.steps[node.id].closes}": node.id for node in nodes}


async def look(browser: httpx.AsyncClient, plan: str, run: Run, steps: list[str]) -> None:
    """Open every page, and say of all that failed what they answered."""
    paths = [f"/plans/{plan}{each}" for each in PLAN]
    for name in steps:
        at = f"/plans/{plan}/steps/{quote(name, safe='')}"
        paths += [at, f"{at}/decide", f"/plans/{plan}/inside/{quote(name, safe='')}"]
    failed = []
    for path in paths:
        answer = await browser.get(path)
        if answer.status_code >= 400:
            failed.append((path, answer.status_code, Page(answer.text).text[-300:]))
    assert failed == [], run.status
    head = (await browser.get(f"/plans/{plan}")).text
    assert f"status-{run.status.value}" in head or run.status.value in head


@pytest.mark.parametrize("status", sampled(sorted(PlanStatus, key=lambda each: each not in ENDED), 2))
async def test_every_page_shows_every_status_of_a_plan(status: PlanStatus, settings: Settings, tmp_path: Path) -> None:
    async with shown(tmp_path / "values") as plans:
        for number, run in enumerate(snapshots()):
            run.status = status
            await seen(plans, settings, f"p{number}", run, list(steps_of(run).values())[:4])


@pytest.mark.slow
async def test_every_page_shows_every_state_of_every_step(settings: Settings, tmp_path: Path) -> None:
    async with shown(tmp_path / "values") as plans:
        number = 0
        for run in snapshots():
            for name in steps_of(run).values():
                state = run.steps[name]
                for status in Status:
                    for awaiting in (None, *AWAITED.get(status, ())):
                        number += 1
                        run.steps[name] = state.model_copy(
                            update={"status": status, "awaiting": awaiting, "child": CHILD}
                        )
                        await seen(plans, settings, f"p{number}", run, [name])
                run.steps[name] = state


async def seen(plans: Shown, settings: Settings, plan: str, run: Run, steps: list[str]) -> None:
    """Look at a plan in this state with a browser that has not seen it before."""
    run.plan = run.plan.model_copy(update={"id": plan})
    await plans.show(plan, run)
    async with browsing(service_for(settings, plans.client)) as browser:
        await look(browser, plan, run, steps)

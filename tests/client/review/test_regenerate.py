"""Regenerating on the screen: a scripted LLM over real HTTP revises the plan, or fails and nothing written is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporalio.client import Client

from activities.registry import load_tools
from client import runs
from client.review.app import ReviewApp
from client.review.tools import tools_of
from client.settings import Settings
from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plans.run import Options
from tests.client.review.conftest import LIST, WRITE, Screen
from tests.waiting import until
from worker import build


async def screen_of(client: Client, settings: Settings, queue: str, workspace: Path, pressed: Any) -> None:
    """A plan in review, its screen, and what is done at it."""
    options = Options(workspace=str(workspace), review=True)
    started = await runs.start(client, {"title": "Notes", "steps": [WRITE]}, options=options, queue=queue)

    async def in_review() -> bool:
        return bool((await runs.show(client, started.plan_id))["status"] == "review")

    await until(in_review, "review")
    tools = await tools_of(client, started.plan_id, settings)
    app = ReviewApp(client, started.plan_id, "bob", tools, await runs.show(client, started.plan_id))
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(Screen(app, pilot, client))
    await runs.cancel(client, started.plan_id)


async def test_a_plan_is_regenerated_with_feedback_and_the_difference_shown(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    better = {"title": "Notes", "steps": [WRITE, LIST]}
    with ScriptedLlm(Script.of([{"reply": {"json": better}}])) as llm:
        changed = settings.with_flags(openai_base_url=llm.url, model="demo")

        async def pressed(screen: Screen) -> None:
            await screen.press("r")
            await screen.until_shown("What is to be different?")
            await screen.type("List it too")
            await screen.press("enter")
            await screen.until_shown("Version 2: what became different")
            await screen.until_shown("+ list: list_directory")
            await screen.press("escape")
            assert screen.order == ["write", "list"]

        async with build(temporal_client, changed, load_tools(()), indexed=True):
            await screen_of(temporal_client, changed, queue, workspace, pressed)


async def test_feedback_that_the_llm_could_not_follow_is_kept(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    async def pressed(screen: Screen) -> None:
        await screen.press("r")
        await screen.until_shown("What is to be different?")
        await screen.type("List it too")
        await screen.press("ctrl+s")
        await screen.until(lambda: screen.said.startswith("Not changed"), "the reason")
        await screen.press("r")
        await screen.until_shown("List it too")

    async with build(temporal_client, settings, load_tools(()), indexed=True):
        await screen_of(temporal_client, settings, queue, workspace, pressed)

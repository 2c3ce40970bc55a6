"""Regenerating on the screen: a scripted LLM over real HTTP revises the plan, or fails and nothing written is lost."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.review.conftest import LIST, WRITE, Screen, Start, screen_of


async def ask_for_a_list(screen: Screen, key: str) -> None:
    """Ask the LLM for another version of the plan, and send it with a key."""
    await screen.press("r")
    await screen.until_shown("What should the LLM change?")
    await screen.type("List it too")
    await screen.press(key)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_plan_is_regenerated_with_feedback_and_the_difference_shown(
    temporal_client: Client, settings: Settings, start_unserved: Start
) -> None:
    better = {"title": "Notes", "steps": [WRITE, LIST]}
    with ScriptedLlm(Script.of([{"reply": {"json": better}}])) as llm:
        changed = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, changed, load_tools(()), indexed=True):
            name = await start_unserved(WRITE, title="Notes")
            async with screen_of(temporal_client, changed, name) as screen:
                await ask_for_a_list(screen, "enter")
                await screen.until_shown("Changes in version 2")
                await screen.until_shown("+ list  list_directory")
                await screen.press("escape")
                assert screen.order == ["write", "list"]


async def test_feedback_that_the_llm_could_not_follow_is_kept(
    temporal_client: Client, settings: Settings, start_unserved: Start
) -> None:
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        name = await start_unserved(WRITE, title="Notes")
        async with screen_of(temporal_client, settings, name) as screen:
            await ask_for_a_list(screen, "ctrl+s")
            await screen.until(lambda: screen.said.startswith("Not changed"), "the reason")
            await screen.press("r")
            await screen.until_shown("List it too")

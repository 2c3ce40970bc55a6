"""Requests and tokens per period, of agents and plans, on a real server with a scripted model."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.features.limits.model import workflow_id
from plansurvive.features.limits.views import limits
from tests.kit.driving import Plans, terminated
from tests.kit.waiting import until
from tests.workflows.agents import Agents, three_tasks

pytestmark = [
    pytest.mark.modes("plain"),
    pytest.mark.on_server("rates in real time, and several clients"),
    pytest.mark.uses("limits"),
]


@pytest_asyncio.fixture(autouse=True)
async def _limiter_ended(temporal_client: Client, queue: str) -> AsyncIterator[None]:
    yield
    await terminated(temporal_client, workflow_id(queue))


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_agent_waits_for_its_turn_and_what_counts_are_the_tokens_that_were_used(
    idle: Plans, make_worker: Callable[..., Any], tmp_path: Path, temporal_client: Client
) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('[llm]\nrequests = "4/2 seconds"\ntokens = "1000000/hour"\nconcurrency = 1\n')
    with ScriptedLlm(Script.of(three_tasks())) as llm:
        async with make_worker(openai_base_url=llm.url, model="demo", limits=file):
            began = time.monotonic()
            view = await Agents(idle, llm).run("Write three files.")

            async def corrected() -> bool:
                rows = {row.bucket: row for row in await limits(temporal_client, queue=idle.queue)}
                return rows["llm.tokens"].used == [view["tokens"]["totalTokens"]] and rows["llm"].running == 0

            await until(corrected, "the limiter knows how many tokens were used")
    assert view["agent"]["end"] == "completed"
    assert len(llm.play.seen) == 6
    assert time.monotonic() - began >= 2  # four, and after two seconds the rest
    assert not [entry for entry in view["log"] if entry["kind"] == "llm"], "a wait is not an attempt"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_busy_endpoint_is_left_alone_by_everybody_for_as_long_as_it_says(
    idle: Plans, make_worker: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('[llm]\nrequests = "1000/second"\n')
    busy = {"reply": {"status": 429, "headers": {"Retry-After": "2"}}}
    with ScriptedLlm(Script.of([busy, *three_tasks()])) as llm:
        async with make_worker(openai_base_url=llm.url, model="demo", limits=file):
            agents = Agents(idle, llm)
            first = await agents.start("Write three files.")
            while not llm.play.seen:
                assert (await first.handle.describe()).close_time is None
            began = time.monotonic()
            view = await agents.run("Write three other files.")
            assert time.monotonic() - began >= 1.8
            assert (await first.ended())["agent"]["end"] == view["agent"]["end"] == "completed"

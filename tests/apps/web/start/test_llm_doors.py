"""Without a key no LLM can be asked: every way to ask one says so, and starts nothing."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.requests.llm import require_llm
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.background_worker import stop_workers
from plansurvive.runtime.settings import Settings
from tests.apps.web.visiting import LIST, Start, Visitor
from tests.client.cli.command import plan

TOLD = "no LLM can be asked"


async def running(client: Client, settings: Settings) -> list[str]:
    """What runs on the queue of this test; other tests share the server."""
    listed = runs.list_plans(client, agents=True, running=True)
    return [each.plan_id async for each in listed if each.queue == settings.task_queue]


@pytest.mark.slow
async def test_each_command_and_form_that_asks_the_llm_refuses_without_a_key_before_it_starts_anything(
    environ: dict[str, str], settings: Settings, visitor: Visitor, start_unserved: Start, temporal_client: Client
) -> None:
    try:
        for command in (("make", "write a note"), ("agent", "write a note"), ("agent", "write a note", "--as-plan")):
            ended = await plan(environ, *command)
            assert (ended.code != 0, ended.err.startswith("LLM_NO_KEY:")) == (True, True), ended.err
        assert await running(temporal_client, settings) == []
        name = await start_unserved(LIST)
        ended = await plan(environ, "regenerate", name, "say it better")
        assert ended.err.startswith("LLM_NO_KEY:"), ended.err
        assert TOLD in await visitor.post("/start/request", {"request": "write a note"}, 422)
        for as_plan in ({}, {"asPlan": "1"}):
            assert TOLD in await visitor.post("/agents", {"request": "write a note", **as_plan}, 422)
        text = await visitor.post(f"/plans/{name}/regenerate", {"version": 1, "feedback": "Say it better"}, 409)
        assert TOLD in text
        assert "Say it better</textarea>" in text, "what was typed is kept"
        assert await running(temporal_client, settings) == [name]
    finally:
        await stop_workers(settings)


def test_a_worker_of_another_machine_has_a_key_of_its_own_and_an_endpoint_here_needs_none(settings: Settings) -> None:
    with pytest.raises(PlanError, match=TOLD):
        require_llm(settings, own_worker=True)
    require_llm(settings, own_worker=False)
    require_llm(settings.with_flags(openai_base_url="http://127.0.0.1:1/v1", model="demo"), own_worker=True)

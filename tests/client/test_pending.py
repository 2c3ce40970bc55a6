"""What people are asked for in all plans, also when the worker of some of them has gone."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from client import pending, runs
from client.errors import NoWorker
from client.settings import Settings
from client.speaking import ask
from plans.run import Options
from tests.driving import terminated
from tests.waiting import until
from worker import build

GATED = {"title": "Gated", "steps": [{"id": "gate", "tool": "sleep", "args": {"seconds": 0}, "requiresApproval": True}]}


async def test_plans_whose_worker_has_gone_keep_nobody_from_seeing_the_others(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    from activities.registry import load_tools

    tools = load_tools(())
    gone = settings.model_copy(update={"task_queue": f"{queue}-gone"})
    names = [f"gone-{number}-{queue}" for number in range(pending.NAMED + 2)]
    options = Options(workspace=str(settings.workspace))
    async with build(temporal_client, gone, tools, indexed=True):
        for name in names:
            await runs.start(temporal_client, GATED, options=options, plan_id=name, queue=gone.task_queue)
        await until(lambda: _all_ask(temporal_client, names), "they all ask")
    # The server still shows who has listened just now, and its process lives on: it counts as a worker.
    async with build(temporal_client, settings, tools, indexed=True):
        await runs.start(temporal_client, GATED, options=options, plan_id=f"here-{queue}", queue=queue)
        await until(lambda: _is_listed(temporal_client, f"here-{queue}"), "it asks")
        told: list[str] = []
        found = [each.plan_id async for each in runs.pending(temporal_client, told.append)]
        assert f"here-{queue}" in found
        assert not set(names) & set(found)
        assert len(told) == 1
        assert told[0].startswith("Not asked, as no worker answers for them: ")
        assert told[0].endswith(" more. Start one: plan worker")
        with_error = await _refused(temporal_client, names[0])
        assert "did not answer within 1 s" in with_error.message
        assert gone.task_queue in with_error.message
    for name in [*names, f"here-{queue}"]:
        await terminated(temporal_client, f"plan-{name}")


async def _all_ask(client: Client, names: list[str]) -> bool:
    asking = {each.plan_id async for each in runs.pending(client)}
    return asking >= set(names)


async def _is_listed(client: Client, plan: str) -> bool:
    """Whether the server's index, a little later than the plan, says that it waits for a person."""
    return any([each.waiting async for each in runs.list_plans(client) if each.plan_id == plan])


async def _refused(client: Client, plan: str) -> NoWorker:
    """What is said when the plan is asked once more."""
    with pytest.raises(NoWorker) as caught:
        await ask(client, plan, "plan", patience=1.0)
    return caught.value

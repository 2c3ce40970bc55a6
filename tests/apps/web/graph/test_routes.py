"""The graph and the time line of a plan that runs, over HTTP: queries that leave no trace."""

from __future__ import annotations

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import browsing, service_for

STEPS = [
    {"id": "a", "tool": "sleep", "args": {"seconds": 0.01}, "description": "<b>first</b>"},
    {"id": "each", "forEach": ["x", "y"], "dependsOn": ["a"], "tool": "sleep", "args": {"seconds": 0.01}},
]


async def events(client: Client, workflow: str) -> int:
    """The number of events in the history of a workflow."""
    return [event.event_id async for event in client.get_workflow_handle(workflow).fetch_history_events()][-1]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_looking_at_the_graph_and_the_time_line_adds_nothing_to_the_history(
    settings: Settings, temporal_client: Client, worker: Worker, queue: str, workspace: object
) -> None:
    options = Options(workspace=str(workspace))
    started = await runs.start(temporal_client, {"steps": STEPS}, options=options, queue=queue)
    await runs.wait(temporal_client, started.plan_id)
    before = await events(temporal_client, started.workflow_id)
    async with browsing(service_for(settings, temporal_client)) as browser:
        address = f"/plans/{started.plan_id}"
        answer = await browser.get(f"{address}/graph.json")
        found = answer.json()
        assert [(row[0], row[4]) for row in found["nodes"]] == [
            ("a", "completed"), ("each", "completed"), ("each[0]", "completed"), ("each[1]", "completed"),
        ]  # fmt: skip
        assert found["edges"] == [[0, 1]]
        same = await browser.get(f"{address}/graph.json", headers={"If-None-Match": answer.headers["ETag"]})
        assert (same.status_code, same.content) == (304, b"")
        text = (await browser.get(f"{address}/gantt")).text
        assert text.count('class="bar ') >= 2
        assert "&lt;b&gt;first&lt;/b&gt;" in text
        assert "<html" not in (await browser.get(f"{address}/gantt?part=1")).text
        assert (await browser.get("/plans/none/graph.json")).status_code == 404
    assert await events(temporal_client, started.workflow_id) == before

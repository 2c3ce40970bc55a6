"""Changes of tasks told on the stream of subscriptions/listen, and nothing added to any history by it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, Literal

import pytest
from mcp.client import ClientExtension, NotificationBinding
from mcp.shared.exceptions import MCPError
from mcp.types import MISSING_REQUIRED_CLIENT_CAPABILITY, NotificationParams, Request, RequestParams, Result
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.common.capability import TASKS
from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.server import build
from tests.apps.mcp.tasks.agent import TakesTasks, accepted, agent, started, until_status, update
from tests.kit.waiting import until

GATED = {
    "steps": [
        {"id": "w", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}, "requiresApproval": True}
    ]
}


class Told(NotificationParams):
    """What a notification says."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")
    task_id: str
    status: str
    ttl_ms: int | None
    input_requests: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any] | None = None


class Hears(TakesTasks):
    """A client that listens."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def notifications(self) -> list[NotificationBinding[Any]]:
        """What it hears."""
        return [NotificationBinding(method="notifications/tasks", params_type=Told, handler=self._hear)]

    async def _hear(self, told: Told) -> None:
        self.told.append(told)


class ListenParams(RequestParams):
    """What to listen to."""

    notifications: dict[str, Any]


class Listen(Request[ListenParams, Literal["subscriptions/listen"]]):
    """Listen."""

    method: Literal["subscriptions/listen"] = "subscriptions/listen"


def listening(*tasks: str) -> Listen:
    """The request to hear of these tasks."""
    return Listen(params=ListenParams(notifications={"taskIds": list(tasks)}))


async def test_each_change_of_a_task_is_told_once_as_it_is_until_it_ends(
    host: Host, worker: Worker, temporal_client: Temporal
) -> None:
    hears = Hears()
    async with agent(build(host), extensions=[hears]) as client:
        task = (await started(client, plan=GATED)).task_id
        stream = asyncio.create_task(client.session.send_request(listening(task, "no-such-task"), Result))
        asked = await until(lambda: next((t for t in hears.told if t.status == "input_required"), None), "it asks")
        [key] = asked.input_requests
        events = len((await temporal_client.get_workflow_handle(f"plan-{task}").fetch_history()).events)
        await until_status(client, task, "input_required")
        assert len((await temporal_client.get_workflow_handle(f"plan-{task}").fetch_history()).events) == events
        await update(client, task, {key: accepted(decision="approve")})
        last = await until(lambda: next((t for t in hears.told if t.status == "completed"), None), "it ends")
        assert last.result["content"]
        assert {told.task_id for told in hears.told} == {task}
        seen = [told.model_dump() for told in hears.told]
        assert all(one != other for one, other in pairwise(seen))
        stream.cancel()
    await host.hub.close()


async def test_a_client_without_the_extension_hears_nothing_of_tasks(host: Host, worker: Worker) -> None:
    class Nothing(ClientExtension):
        identifier = "com.example/nothing"

    async with agent(build(host), extensions=[Nothing()]) as client:
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(listening("x"), Result)
    assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert TASKS in str(refused.value.error.data)

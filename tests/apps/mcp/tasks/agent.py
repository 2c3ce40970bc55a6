"""An MCP client of the official SDK that takes tasks, and a person at it who fills in forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mcp import Client
from mcp.client import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, Request, RequestParams, Result
from pydantic import Field

from plansurvive.apps.mcp.common.capability import TASKS
from tests.kit.waiting import until

Data = dict[str, Any]


class Created(Result):
    """The answer of a call that became a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None
    status_message: str | None = None


class Got(Result):
    """The answer of tasks/get."""

    task_id: str
    status: str
    ttl_ms: int | None
    status_message: str = ""
    input_requests: dict[str, Any] = Field(default_factory=dict)
    result: Data | None = None
    error: Data | None = None


class TaskParams(RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """With replies."""

    input_responses: Data


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """Look at a task."""

    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    """Cancel a task."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class UpdateTask(Request[UpdateParams, Literal["tasks/update"]]):
    """Reply to what a task asks."""

    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class TakesTasks(ClientExtension):
    """The client's half of the extension, so far as to learn the id."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Answers that are tasks."""
        return [ResultClaim(result_type="task", model=Created, resolve=_resolved)]


async def _resolved(claimed: Created, ctx: ClaimContext) -> CallToolResult:
    raise AssertionError(f"tests follow tasks themselves: {claimed} {ctx}")


async def refuses(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """The callback of a client that declares elicitation; in a task, the test replies."""
    raise AssertionError(f"{context} {params}")


def agent(server: Any, **options: Any) -> Client:
    """A client that takes tasks and can ask its person."""
    given: Any = {"elicitation_callback": refuses, "extensions": [TakesTasks()]}
    return Client(server, **(given | options))


async def started(client: Client, tool: str = "plan_start", **arguments: Any) -> Created:
    """The task of a call."""
    found = await client.session.call_tool(tool, arguments, allow_claimed=True)
    assert isinstance(found, Created), found
    return found


async def got(client: Client, task: str) -> Got:
    """A task as it is now."""
    return await client.session.send_request(GetTask(params=TaskParams(task_id=task)), Got)


async def update(client: Client, task: str, replies: Mapping[str, Any]) -> Data:
    """Reply; returns the answer."""
    request = UpdateTask(params=UpdateParams(task_id=task, input_responses=dict(replies)))
    return (await client.session.send_request(request, Result)).model_dump()


async def cancel(client: Client, task: str) -> Data:
    """Cancel; returns the answer."""
    request = CancelTask(params=TaskParams(task_id=task))
    return (await client.session.send_request(request, Result)).model_dump()


async def until_status(client: Client, task: str, *wanted: str) -> Got:
    """The task once it has one of these statuses."""

    async def look() -> Got | None:
        found = await got(client, task)
        return found if found.status in wanted else None

    found: Got = await until(look, f"the task is {' or '.join(wanted)}")
    return found


def accepted(**content: Any) -> Data:
    """The reply of a form that was filled in."""
    return {"action": "accept", "content": content}

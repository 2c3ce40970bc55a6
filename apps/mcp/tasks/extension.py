"""The extension `io.modelcontextprotocol/tasks`: calls that start a plan answer with a task, whose id is the plan's.

A task is handed out once the plan exists on the Temporal server, so it survives this process, a reboot, a month: any
server of ours on the same Temporal server knows it. Cancelling it cancels the plan, which cleans up first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult, RequestParams
from pydantic import Field

from plansurvive.apps.mcp.common.capability import TASKS, VERSIONS, Request, check_header, takes_tasks
from plansurvive.apps.mcp.common.host import Forbidden, Host
from plansurvive.apps.mcp.decisions.flow import deciding_of, person_of, replied
from plansurvive.apps.mcp.tasks.looking import task_of
from plansurvive.client import runs
from plansurvive.client.errors import BadPlanId, PlanClosed, PlanNotFound
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import safe

MAX_RESPONSES = 100
COMPLETE = {"resultType": "complete"}
_NOT_A_TASK = (PlanNotFound.code, BadPlanId.code)


class TaskParams(RequestParams):
    """Of tasks/get and tasks/cancel."""

    task_id: str = Field(max_length=300)


class UpdateParams(TaskParams):
    """Of tasks/update."""

    input_responses: dict[str, Any] = Field(max_length=MAX_RESPONSES)


class Tasks(Extension):
    """Plans as tasks."""

    identifier = TASKS

    def __init__(self, host: Host) -> None:
        self._host = host

    def methods(self) -> Sequence[MethodBinding]:
        """The methods of the extension."""
        return [
            MethodBinding("tasks/get", TaskParams, self._get, VERSIONS),
            MethodBinding("tasks/update", UpdateParams, self._update, VERSIONS),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, VERSIONS),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Request, call_next: CallNext
    ) -> HandlerResult:
        """Answer a call that starts a plan with a task, if the client takes tasks."""
        if params.name in self._host.tasks_only:
            require_client_extension(ctx, TASKS)
        found = await call_next(ctx)
        if params.name not in self._host.starting or not takes_tasks(ctx) or not isinstance(found, CallToolResult):
            return found
        plan = (found.structured_content or {}).get("planId")
        if found.is_error or not isinstance(plan, str):
            return found
        with as_protocol_errors():
            here = await self._host.connected()
            return {"resultType": "task", **(await task_of(here, plan, "elsewhere")).seed()}

    async def _get(self, ctx: Request, params: TaskParams) -> HandlerResult:
        here = await self._checked(ctx, params)
        with as_protocol_errors():
            task = await task_of(here, params.task_id, deciding_of(self._host, Context(request_context=ctx)))
        return {**COMPLETE, **task.detailed()}

    async def _update(self, ctx: Request, params: UpdateParams) -> HandlerResult:
        here = await self._checked(ctx, params)
        request: Context[Any, Any] = Context(request_context=ctx)
        with as_protocol_errors(), suppress(PlanClosed):  # what has ended asks nothing
            await replied(
                here,
                params.task_id,
                params.input_responses,
                deciding_of(self._host, request),
                person_of(self._host, request),
                again=False,
            )
        return COMPLETE

    async def _cancel(self, ctx: Request, params: TaskParams) -> HandlerResult:
        here = await self._checked(ctx, params)
        with as_protocol_errors():
            self._host.caller(Context(request_context=ctx)).to_operate()
            with suppress(PlanClosed):  # it has ended already, which is no error
                await runs.cancel(here.client, params.task_id, once=True)
        return COMPLETE

    async def _checked(self, ctx: Request, params: TaskParams) -> Connected:
        """The connection for a request that may be about a task. Raises MCPError."""
        require_client_extension(ctx, TASKS)
        check_header(ctx, params.task_id)
        with as_protocol_errors():
            self._host.caller(Context(request_context=ctx))
            return await self._host.connected()


@contextmanager
def as_protocol_errors() -> Iterator[None]:
    """Our errors as errors of the protocol: an id that is no task's is a bad parameter."""
    try:
        yield
    except PlanError as error:
        is_unknown = error.code in _NOT_A_TASK or isinstance(error, Forbidden)
        code = INVALID_PARAMS if is_unknown else INTERNAL_ERROR
        raise MCPError(code=code, message=safe(error.message)[:2_000], data={"code": error.code}) from error

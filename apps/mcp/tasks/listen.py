"""Tells of changes of tasks: `notifications/tasks` on the stream of `subscriptions/listen`, for the `taskIds` in it.

The library serves the stream; it does not know task ids. This middleware adds those that are honoured to the
acknowledgement, and the notifications after it. Plans are watched by the hub, one watcher each however many listen,
which adds nothing to any history. A stream that ends loses nothing: clients listen again, and read the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context, require_client_extension
from mcp.server.session import ServerSession
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, Notification, NotificationParams, SubscriptionsAcknowledgedNotification

from plansurvive.apps.mcp.common.capability import TASKS, Request
from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.common.rules import Deciding
from plansurvive.apps.mcp.decisions.flow import deciding_of
from plansurvive.apps.mcp.tasks.extension import as_protocol_errors
from plansurvive.apps.mcp.tasks.looking import task_of
from plansurvive.apps.mcp.tasks.wire import Task
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import describe
from plansurvive.plans.errors import PlanError

LISTEN = "subscriptions/listen"
MAX_TASKS = 50
"""Tasks of one stream."""
EVERY = 0.5
"""Seconds between two notifications about one task."""
KEEP = 15.0
"""Seconds after which a task is looked at although nothing was told of it: its worker may have gone."""


class TaskNotification(Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """A task as it is now."""

    method: Literal["notifications/tasks"] = "notifications/tasks"


class Acknowledging:
    """The session of a stream: adds the task ids that are honoured to its acknowledgement; says when that was sent."""

    def __init__(self, session: ServerSession, tasks: Sequence[str]) -> None:
        self._session, self._tasks = session, tasks
        self.acknowledged = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """As the session does."""
        if isinstance(notification, SubscriptionsAcknowledgedNotification):
            params = notification.params
            honoured = params.notifications.model_copy(update={"taskIds": list(self._tasks)})
            notification = notification.model_copy(
                update={"params": params.model_copy(update={"notifications": honoured})}
            )
        await self._session.send_notification(notification, related_request_id)
        self.acknowledged.set()


class TaskNotifications:
    """The middleware of one server."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        """Serve a stream that names tasks; everything else is passed on."""
        named = _task_ids(ctx.params) if ctx.method == LISTEN else None
        if named is None:
            return await call_next(ctx)
        require_client_extension(ctx, TASKS)
        if not isinstance(named, list) or len(named) > MAX_TASKS or not all(isinstance(each, str) for each in named):
            raise MCPError(code=INVALID_PARAMS, message=f"taskIds must be a list of at most {MAX_TASKS} ids")
        request: Context[Any, Any] = Context(request_context=ctx)
        with as_protocol_errors():
            self._host.caller(request)
            here, deciding = await self._host.connected(), deciding_of(self._host, request)
            tasks = [each for each in dict.fromkeys(named) if await _exists(here, each)]
        session = Acknowledging(ctx.session, tasks)
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(self._tell, ctx, session, here, task, deciding)
            found = await call_next(replace(ctx, session=cast(ServerSession, session)))
            group.cancel_scope.cancel()
        return found

    async def _tell(self, ctx: Request, session: Acknowledging, here: Connected, plan: str, deciding: Deciding) -> None:
        """Send what a task is now, and whenever that changes, until it has ended."""
        await session.acknowledged.wait()
        watcher = await self._host.hub.watcher(here.client, plan)
        known: Task | None = None
        with watcher.viewed():
            while known is None or not known.has_ended:
                version = watcher.version
                with suppress(PlanError):  # the server is away: as long as nobody can say what is new, nothing is
                    found = await task_of(here, plan, deciding, watcher.view)
                    if found.differs(known):
                        await _send(ctx, session, found)
                    known = found
                await anyio.sleep(EVERY)
                await watcher.newer(version, KEEP)


async def _send(ctx: Request, session: Acknowledging, task: Task) -> None:
    stamp = NotificationParams(meta={SUBSCRIPTION_ID_META_KEY: ctx.request_id}).model_dump(by_alias=True, mode="json")
    await session.send_notification(TaskNotification(params={**task.detailed(), **stamp}), ctx.request_id)


async def _exists(here: Connected, plan: str) -> bool:
    try:
        await describe(here.client, plan)
    except PlanError as error:
        if error.code in ("PLAN_NOT_FOUND", "BAD_PLAN_ID"):
            return False
        raise
    return True


def _task_ids(params: Mapping[str, Any] | None) -> Any:
    """The `taskIds` of a request to listen; None if it has none."""
    wanted = (params or {}).get("notifications")
    return wanted.get("taskIds") if isinstance(wanted, Mapping) else None

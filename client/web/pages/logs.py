"""What the commands of a plan write, as they write it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.client.watchers.output import Output
from plansurvive.client.watchers.stream import streamed
from plansurvive.client.web.rendering import page, url_of
from plansurvive.client.web.service import service_of
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore


async def logs(request: Request) -> Response:
    """The page; what was written so far comes with the first message, without JavaScript at once (`now`)."""
    plan, step = request.path_params["plan_id"], request.query_params.get("step", "")
    watcher = await service_of(request).watcher(plan)
    view = await watcher.first()
    return page(request, "logs.html", nav="plans", tab="logs", plan=view.id, view=view, step=step,
                url=url_of(f"/plans/{plan}/logs/live", step=step))  # fmt: skip


async def follow(request: Request) -> Response:
    """The output as it comes."""
    cursor = request.headers.get("last-event-id", "")
    since = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 12 else 0
    return streamed((await _output(request)).messages(since))


async def _output(request: Request) -> Output:
    service = service_of(request)
    step = request.query_params.get("step", "")
    store = ValueStore(storage(service.settings))
    return await service.hub.output(await service.client(), store, request.path_params["plan_id"], step)


routes = [Route("/plans/{plan_id}/logs", logs), Route("/plans/{plan_id}/logs/live", follow)]

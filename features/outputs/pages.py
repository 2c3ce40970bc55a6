"""What the commands of a plan write, as they write it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.client.ids import workflow_id
from plansurvive.client.page.pages import Link, page, site_of
from plansurvive.client.watchers.stream import streamed
from plansurvive.features.outputs.live import Output
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore


async def logs(request: Request) -> Response:
    """The page; what was written so far comes with the first message."""
    site, plan = site_of(request), request.path_params["plan_id"]
    view = await (await site.hub.watcher(await site.client(), plan)).first()
    step = request.query_params.get("step", "")
    return page(request, "outputs/logs.html", nav="plans", tab="logs", plan=view.id, view=view, step=step)


async def follow(request: Request) -> Response:
    """The output as it comes."""
    cursor = request.headers.get("last-event-id", "")
    since = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 12 else 0
    return streamed((await _output(request)).messages(since))


async def _output(request: Request) -> Output:
    site, plan, step = site_of(request), request.path_params["plan_id"], request.query_params.get("step", "")
    client, store = await site.client(), ValueStore(storage(site.settings))
    return await site.hub.shared(("outputs", workflow_id(plan), step), lambda: Output(client, store, plan, step))


routes = [Route("/plans/{plan_id}/logs", logs), Route("/plans/{plan_id}/logs/live", follow)]
LINKS = {"plan": Link("logs", "/logs", "Logs")}

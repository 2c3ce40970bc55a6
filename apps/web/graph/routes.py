"""The addresses of the graph and the time line of a plan: queries only, so that looking adds nothing to its history."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.graph.document import document, tag
from plansurvive.apps.web.graph.gantt import time_line
from plansurvive.client.access import Role, needs
from plansurvive.client.watchers.watcher import Watcher
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import PlanView

_SENT: WeakKeyDictionary[Watcher, tuple[str, bytes]] = WeakKeyDictionary()
"""By watched plan, the tag of the document that was sent last, and the document: made once for all who look."""


@needs(Role.VIEWER)
async def graph(request: Request) -> Response:
    """The graph as JSON; 304 if the plan is as it was when the browser last asked."""
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    view = await watcher.whole()
    headers = {"ETag": tag(view), "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    known, text = _SENT.get(watcher, ("", b""))
    if known != headers["ETag"]:
        text = await asyncio.to_thread(_text, view)
        _SENT[watcher] = headers["ETag"], text
    return Response(text, media_type="application/json", headers=headers)


@needs(Role.VIEWER)
async def gantt(request: Request) -> Response:
    """The time line as a page; with `part`, only the picture, a fragment."""
    view = await (await service_of(request).watcher(request.path_params["plan_id"])).whole()
    found = await asyncio.to_thread(time_line, view, datetime.now(UTC))
    if found and "part" in request.query_params:
        return page(request, "_gantt.html", plan=view.id, time_line=found)
    return page(request, "gantt.html", nav="plans", plan=view.id, title=line(view.title or view.id), time_line=found)


def _text(view: PlanView) -> bytes:
    """A tenth of a second for thousands of steps."""
    return json.dumps(document(view), ensure_ascii=False, separators=(",", ":")).encode()


routes = [Route("/plans/{plan_id}/graph.json", graph), Route("/plans/{plan_id}/gantt", gantt)]

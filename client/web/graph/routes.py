"""The addresses of the graph and the time line of a plan: queries only, so that looking adds nothing to its history."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from client import runs
from client.web.graph.document import document, tag
from client.web.graph.gantt import time_line
from client.web.rendering import page
from client.web.service import service_of
from plans.views.models import PlanView
from plans.views.safe_text import line


async def graph(request: Request) -> Response:
    """The graph as JSON; 304 if the plan is as it was when the browser last asked."""
    view = await _view(request)
    headers = {"ETag": tag(view), "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    found = await asyncio.to_thread(document, view)  # a tenth of a second for thousands of steps
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Response(text, media_type="application/json", headers=headers)


async def gantt(request: Request) -> Response:
    """The time line as a page; with `part`, only the picture, a fragment."""
    view = await _view(request)
    found = await asyncio.to_thread(time_line, view, datetime.now(UTC))
    if found and "part" in request.query_params:
        return page(request, "_gantt.html", plan=view.id, time_line=found)
    return page(request, "gantt.html", nav="plans", plan=view.id, title=line(view.title or view.id), time_line=found)


async def _view(request: Request) -> PlanView:
    return await runs.show(await service_of(request).client(), request.path_params["plan_id"])


routes = [Route("/plans/{plan_id}/graph.json", graph), Route("/plans/{plan_id}/gantt", gantt)]

"""What is recorded of a plan beside its steps: the files it changed, with diffs; its history; what it cost."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page, url_of
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.ids import plan_id
from plansurvive.plans.files.changes import one_of

ENTRIES = 500
"""Log entries that are shown, the newest."""
DIFF_CHARACTERS = 20_000
"""Of the diff of one file."""


async def files(request: Request) -> Response:
    """The files that each step created, changed and deleted. The worker reads them, so the page comes first."""
    plan, step = request.path_params["plan_id"], request.query_params.get("step", "")
    watcher = await service_of(request).watcher(plan)
    context: dict[str, Any] = {"plan": plan_id(plan), "view": await watcher.first(), "step": step}
    if "now" not in request.query_params:
        url = url_of(f"/plans/{plan}/files", step=step, now="1")
        return page(request, "files.html", nav="plans", tab="files", url=url, report=None, **context)
    report = await runs.file_changes(watcher.client, plan, step or None)
    name = "_files.html" if request.headers.get("hx-request") == "true" else "files.html"
    return page(request, name, nav="plans", tab="files", url="", report=report, most=DIFF_CHARACTERS, one_of=one_of,
                **context)  # fmt: skip


async def changes(request: Request) -> Response:
    """The change log and the log of the plan, newest first."""
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    view, whole = await watcher.first(), await watcher.whole()
    return page(request, "changes.html", nav="plans", tab="changes", plan=view.id, view=view,
                changes=whole.changes[::-1], log=whole.log[-ENTRIES:][::-1], more=max(0, len(whole.log) - ENTRIES),
                whole=whole)  # fmt: skip


async def cost(request: Request) -> Response:
    """Tokens and requests, by model and by step."""
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    view, whole = await watcher.first(), await watcher.whole()
    by_step = sorted(view.tokens.by_step.items(), key=lambda item: -item[1])[:200]
    by_model = sorted(view.tokens.by_model.items(), key=lambda item: -item[1])
    return page(request, "cost.html", nav="plans", tab="cost", plan=view.id, view=view, tokens=view.tokens,
                by_step=by_step, by_model=by_model, budget=whole.budget)  # fmt: skip


routes = [
    Route("/plans/{plan_id}/files", files),
    Route("/plans/{plan_id}/changes", changes),
    Route("/plans/{plan_id}/cost", cost),
]

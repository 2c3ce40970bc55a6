"""The web page as an ASGI application: routes of all areas, the guard in front, errors as pages."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from plansurvive.apps.web import login_pages as login
from plansurvive.apps.web import one_time
from plansurvive.apps.web.common import assets
from plansurvive.apps.web.common.rendering import error_page
from plansurvive.apps.web.common.service import Service, service_of
from plansurvive.apps.web.decisions import routes as decisions
from plansurvive.apps.web.drafts import routes as drafts
from plansurvive.apps.web.graph import routes as graph
from plansurvive.apps.web.library import routes as library
from plansurvive.apps.web.plans import plan, plans, record, step
from plansurvive.apps.web.start import routes as start
from plansurvive.client.access import Guard
from plansurvive.client.access.guard import SlowBody
from plansurvive.client.access.people import Forbidden, unguarded
from plansurvive.client.access.provider import LoginFailed
from plansurvive.client.errors import BadPlanId, PlanClosed, PlanExists, PlanNotFound
from plansurvive.client.missing import completed
from plansurvive.client.page.pages import Mounted, all_pages, mounted
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.links import LinkRefused

LOG = logging.getLogger(__name__)
STATUSES: list[tuple[type[PlanError], int]] = [
    (PlanNotFound, 404), (BadPlanId, 404), (NotConnected, 503), (Forbidden, 403), (Refused, 409), (PlanClosed, 409),
    (PlanExists, 409), (InvalidPlan, 422), (LoginFailed, 403), (SlowBody, 408), (LinkRefused, 410),
]  # fmt: skip
"""HTTP statuses of errors; 400 for all others."""
AREAS: tuple[Sequence[BaseRoute], ...] = (
    assets.routes,
    login.routes,
    one_time.routes,
    decisions,
    plans.routes,
    graph.routes,
    drafts.routes,
    start.routes,
    library.routes,
    record.routes,
    plan.routes,
    step.routes,
)
"""The routes of each area. The last one takes every address below `/plans/ID/steps/`: whatever is more special, such
as `/plans/ID/steps/STEP/decide`, comes before it."""
UNKNOWN = frozenset(("UNKNOWN_STEP", "NO_VALUE"))
"""Codes of errors about what there is not."""
SENTENCES = {403: "You may not see this.", 404: "There is no such page.", 405: "This page cannot do that."}


def application(service: Service, beside: Sequence[Mounted] | None = None) -> Starlette:
    """The application. `service` is closed by whoever made it. Raises ValueError for a route that anybody could use.

    `beside`: what is served beside the pages, as long as the application's lifespan; None: what all modules of pages
    mount.
    """
    beside = mounted(service) if beside is None else beside
    added = [each.module.routes for each in all_pages()]
    of_programs = (each.routes() for each in beside)
    routes = [route for area in (*of_programs, *added, *AREAS) for route in area]
    if open_ := unguarded(routes):
        raise ValueError(f"these may change something and do not say who may (`needs`): {', '.join(open_)}")
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, access=service.access, refused=_refused, entrances=[each.entrance for each in beside])
        ],
        exception_handlers={PlanError: _plan_error, HTTPException: _http_error, Exception: _unforeseen},
        lifespan=lambda _app: _running(beside),
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


@asynccontextmanager
async def _running(beside: Sequence[Mounted]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for each in beside:
            await stack.enter_async_context(each.running())
        yield


async def _refused(request: Request, status: int, reason: str) -> Response:
    return error_page(request, PlanError(reason, "FORBIDDEN"), status)


async def _plan_error(request: Request, error: Exception) -> Response:
    error = await completed(service_of(request).client, cast(PlanError, error))
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 400)
    status = 404 if error.code in UNKNOWN else status
    return error_page(request, error, status)


async def _http_error(request: Request, error: Exception) -> Response:
    error = cast(HTTPException, error)
    sentence = SENTENCES.get(error.status_code, error.detail)
    return error_page(request, PlanError(sentence, f"HTTP_{error.status_code}"), error.status_code)


async def _unforeseen(request: Request, error: Exception) -> Response:
    LOG.error("%s %s", request.method, request.url.path, exc_info=error)
    text = "Something unforeseen happened. This is a bug; the log of `plan web` has the details."
    return error_page(request, PlanError(text, "UNEXPECTED"), 500)

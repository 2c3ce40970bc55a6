"""`/limits`: rates and concurrency, what is used, and which plans wait."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.client.page.pages import page, site_of
from plansurvive.features.limits.limits_file import read_limits
from plansurvive.features.limits.views import in_words, limits


async def listed(request: Request) -> Response:
    """The limits in use, and those that limits.toml names."""
    service = site_of(request)
    rows = await limits(await service.client(), queue=service.settings.task_queue)
    named = read_limits(service.settings).texts
    return page(request, "limits/limits.html", nav="", rows=[(row, in_words(row)) for row in rows], named=named)


routes = [Route("/limits", listed)]

"""`/plans/{id}/event`: tells a plan that something has happened, for the steps that wait for it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.page.pages import done
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.errors import PlanError


@needs(Role.OPERATOR)
async def event_page(request: Request) -> Response:
    """The form of an event."""
    return _shown(request, {})


@needs(Role.OPERATOR)
async def event(request: Request) -> Response:
    """Send the event; the plan says who receives it, or that it is kept."""
    form, name = await form_of(request), request.path_params["plan_id"]
    typed = {key: text_of(form, key).strip() for key in ("name", "data")}
    client = await service_of(request).client()
    try:
        said = await runs.event(client, name, typed["name"], _data(typed["data"]), **person_of(request).author)
    except PlanError as error:
        return _shown(request, typed, error)
    return done(request, f"/plans/{quote(name, safe='')}", said)


def _data(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise PlanError(f"the data is not valid JSON: {json_problem(error)}", "INVALID_ARGS") from None


def _shown(request: Request, typed: dict[str, str], error: PlanError | None = None) -> Response:
    name = request.path_params["plan_id"]
    status = 422 if error else 200
    return page(request, "drafts/event.html", status=status, nav="plans", plan_id=name, typed=typed, error=error)

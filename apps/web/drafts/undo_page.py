"""`/plans/{id}/undo`: what would be undone, and then doing it, in the background: an undo may ask a person."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.drafts.memory import Undo, memory_of
from plansurvive.client import runs
from plansurvive.client.access import Role
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.access.people import needs
from plansurvive.client.page.pages import done
from plansurvive.client.runs import Started, Summary
from plansurvive.features.files.verbs import Undone, undo_whole, would_undo
from plansurvive.plans.errors import PlanError

SOON = 2.0
"""Seconds within which most undos are done: so long the answer to the form waits."""
AGAIN_SECONDS = 2
MAX_KEPT = 200


@needs(Role.OPERATOR)
async def preview(request: Request) -> Response:
    """What would be undone; or what was."""
    step = request.query_params.get("step", "") or None
    key = (request.path_params["plan_id"], step or "")
    known = memory_of(request).undos.get(key)
    if known is not None and not known.is_under_way:
        del memory_of(request).undos[key]
    return await _shown(request, step, known)


@needs(Role.OPERATOR)
async def undo(request: Request) -> Response:
    """Undo. An undo that is under way already is shown instead."""
    form, name = await form_of(request), request.path_params["plan_id"]
    step, partly, yes = text_of(form, "step") or None, bool(text_of(form, "partly")), bool(text_of(form, "yes"))
    client, undos = await service_of(request).client(), memory_of(request).undos
    key = (name, step or "")
    begun = undos.get(key)
    if begun is None or not begun.is_under_way:
        while len(undos) >= MAX_KEPT:
            undos.pop(next(iter(undos)))
        begun = undos[key] = Undo()
        task = begun.task = asyncio.create_task(_undo(client, name, step, begun, partly=partly, yes=yes))
        await asyncio.wait({task}, timeout=SOON)
    query = f"?{urlencode({'step': step})}" if step else ""
    return done(request, f"/plans/{quote(name, safe='')}/undo{query}")


async def _undo(client: Client, name: str, step: str | None, begun: Undo, *, partly: bool, yes: bool) -> Undone:
    async def to_its_end(started: Started) -> Summary:
        begun.undo_plan = started.plan_id
        return await runs.wait(client, started.plan_id)

    try:
        return await undo_whole(client, name, step, to_its_end, partly=partly, yes=yes)
    except PlanError as error:
        begun.error = error
        raise


async def _shown(request: Request, step: str | None, known: Undo | None) -> Response:
    client, name = await service_of(request).client(), request.path_params["plan_id"]
    waits = known is not None and known.is_under_way
    ended = known.task.result() if known and known.task and not waits and known.error is None else None
    error = known.error if known is not None else None
    would = None
    if not waits and ended is None:
        try:
            would = await would_undo(client, name, step)
        except PlanError as problem:
            error = error or problem
    response = page(
        request, "drafts/undo.html", status=409 if error else 200, nav="plans", plan_id=name, step=step, would=would,
        ended=ended, known=known, waits=waits, error=error,
    )  # fmt: skip
    if waits:
        response.headers["Refresh"] = str(AGAIN_SECONDS)
    return response

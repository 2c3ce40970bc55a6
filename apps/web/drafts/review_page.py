"""`/plans/{id}/draft`: the review of a plan, and its begin.

A plan that the LLM is writing or revising is shown again every other second, without JavaScript.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.drafts.memory import loaded, memory_of
from plansurvive.apps.web.drafts.reviewed import Reviewed
from plansurvive.apps.web.drafts.rows import rows_of
from plansurvive.apps.web.drafts.versions import Since
from plansurvive.client import runs
from plansurvive.client.access import Role
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.access.people import needs, person_of
from plansurvive.client.page.pages import done, ready
from plansurvive.client.requests.llm import require_llm_of
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution.messages import MAX_BYTES as MESSAGE_BYTES
from plansurvive.plans.run import PlanStatus

AGAIN_SECONDS = 2
"""After which a page that waits for the LLM is loaded again."""
MAX_FEEDBACK = 10_000
LOG = 20
"""Entries of the change log that are shown."""


async def draft(request: Request) -> Response:
    """The review. `since`: the version from which on changes are shown."""
    found = await loaded(request)
    version = version_of(request.query_params.get("since", ""))
    since = memory_of(request).versions.since(found, version) if version is not None else None
    return shown(request, found, since=since)


@needs(Role.APPROVER)
async def begin(request: Request) -> Response:
    """End the review of the version that was shown; a newer one is shown first."""
    form, name = await form_of(request), request.path_params["plan_id"]
    found = await loaded(request)
    version = version_of(text_of(form, "version"))
    if version is not None and version != found.version:
        text = f"The plan has changed since you read it: it is at version {found.version} now. Nothing has started."
        return refused(request, found, Refused(text, "STALE_VERSION"), version)
    client = await service_of(request).client()
    try:
        said = await runs.begin(client, name, **person_of(request).author)
    except PlanError as error:
        return refused(request, await loaded(request), error, version)
    return done(request, f"/plans/{quote(name, safe='')}", said or "The plan has started.")


@needs(Role.OPERATOR)
async def regenerate(request: Request) -> Response:
    """Ask the LLM to revise the plan. The page of the plan then waits, and shows what is different."""
    form, name = await form_of(request), request.path_params["plan_id"]
    feedback, version = text_of(form, "feedback").strip(), version_of(text_of(form, "version"))
    found = await loaded(request)
    if not feedback or len(feedback) > MAX_FEEDBACK or len(feedback.encode()) > MESSAGE_BYTES:
        text = f"Say what the LLM should change, in 1 to {MAX_FEEDBACK:,} characters."
        return refused(request, found, PlanError(text, "BAD_REQUEST"), None, feedback)
    if version is not None and version != found.version:
        text = f"The plan has changed in the meantime: it is at version {found.version} now. The LLM was not asked."
        return refused(request, found, Refused(text, "STALE_VERSION"), version, feedback)
    try:
        client, _, keeps_worker = await ready(request)
        await require_llm_of(client, name, service_of(request).settings, own_worker=keeps_worker)
    except PlanError as error:
        return refused(request, found, error, None, feedback)
    memory_of(request).regenerate(client, name, feedback, found.version, person_of(request))
    return done(request, f"/plans/{quote(name, safe='')}/draft?since={found.version}")


def refused(request: Request, found: Reviewed, error: PlanError, version: int | None, feedback: str = "") -> Response:
    """The review with the reason why something was not done, and what has changed since the version it was about."""
    since = memory_of(request).versions.since(found, version) if version is not None else None
    return shown(request, found, since=since, error=error, feedback=feedback, status=409)


def shown(
    request: Request,
    found: Reviewed,
    *,
    since: Since | None = None,
    error: PlanError | None = None,
    feedback: str = "",
    status: int = 200,
) -> Response:
    """The page. `feedback`: what a person typed for the LLM and was not sent."""
    asked = memory_of(request).regenerations.get(found.run.plan.id or "")
    waits = found.run.status is PlanStatus.DRAFT or (asked is not None and asked.is_under_way)
    if asked is not None and asked.error is not None:
        feedback, error = feedback or asked.feedback, error or asked.error
    response = page(
        request,
        "drafts/review.html",
        status=status,
        nav="plans",
        plan=found.view,
        run=found.run,
        found=found,
        listed=rows_of(found),
        since=since,
        error=error,
        feedback=feedback,
        waits=waits,
        asked=asked,
        tools=sorted(found.tools),
        may_begin=found.run.status is PlanStatus.REVIEW and not found.view.problems and not waits,
        log=list(reversed(found.view.changes))[:LOG],
    )
    if waits:
        response.headers["Refresh"] = str(AGAIN_SECONDS)
    return response


def version_of(text: str) -> int | None:
    """A version as a form or an address names it; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

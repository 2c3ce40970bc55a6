"""`/decide/{token}`: shows the whole call of a one-time link, and a button decides about it.

Opening the link decides nothing: mail programs and scanners open links. The decision is a POST with the page's own
token and Origin, like every other. What the plan refuses of a person it refuses of a link.

The link carries what it decides about, so page and worker share a key and no disk. Rejected: random names of records.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.decisions.asked import asked_now, cards_of
from plansurvive.apps.web.decisions.cards import Shown
from plansurvive.apps.web.decisions.inbox import outcome
from plansurvive.client import runs
from plansurvive.client.access import public
from plansurvive.client.access.forms import BadForm, form_of, text_of
from plansurvive.client.decisions import Choice
from plansurvive.client.errors import NoWorker
from plansurvive.client.rpc import describe
from plansurvive.client.verbs.calls import with_values
from plansurvive.plans.errors import Refused
from plansurvive.runtime.base.wait import until
from plansurvive.runtime.links import Link, LinkRefused, Links

MAX_COMMENT = 2_000
PATIENCE = 10.0
"""Seconds to wait for another request with the same link, to say what it decided."""


async def opened(request: Request) -> Response:
    """The call that the link decides about, in full; or why there is nothing to decide."""
    service = service_of(request)
    link = Links(service.settings).verify(request.path_params["token"])
    await _require_same_plan(await service.client(), link)
    shown = await _card(request, link)
    became = "" if shown else await outcome(await service.client(), link.plan_id, link.step_id)
    return _page(request, link, "Nothing to decide", became, shown)


@public
async def decided(request: Request) -> Response:
    """Approve or deny, once. Raises LinkRefused, Refused, PlanClosed, and NotConnected with the link unused."""
    form, service = await form_of(request), service_of(request)
    verb, comment = text_of(form, "decision"), text_of(form, "comment").strip()[:MAX_COMMENT]
    if verb not in ("approve", "deny"):
        raise BadForm("The form does not say whether to approve or to deny.")
    links = Links(service.settings)
    link = links.verify(request.path_params["token"])
    choice = Choice(
        step_id=link.step_id,
        by=link.person,
        comment=comment,
        version=link.version,
        digest=link.digest,
        via="link",
    )
    client = await service.client()
    await _require_same_plan(client, link)
    with ExitStack() as held:
        used = await _taken(links, link, held)
        try:
            said = await (runs.approve if verb == "approve" else runs.deny)(client, link.plan_id, choice)
        except NoWorker as error:  # it may be lost before a worker takes it, so that the link stays valid
            return _page(request, link, "Not decided yet", error.message)
        used(f"{said} ({datetime.now(UTC):%Y-%m-%d %H:%M UTC})")
    return _page(request, link, "Thank you", said, done=True)


def _page(
    request: Request, link: Link, heading: str, became: str, shown: Shown | None = None, *, done: bool = False
) -> Response:
    """The card of the link's call; without one, the heading and what became of the call."""
    return page(
        request, "link.html", link=link, until=link.until, heading=heading, became=became, shown=shown, done=done
    )


async def _require_same_plan(client: Client, link: Link) -> None:
    """Raises LinkRefused if the plan's id has been given to another plan since the link was sent. Raises as `describe`.

    Temporal lets an id be used again once its workflow has ended; a call may be the same to the letter there.
    """
    described = await describe(client, link.plan_id)
    if described.raw_description.workflow_execution_info.first_run_id != link.run:
        text = f"the link is for an earlier plan with the id '{link.plan_id}'; a new message has a new link"
        raise LinkRefused(text, "LINK_INVALID")


async def _card(request: Request, link: Link) -> Shown | None:
    """What the step asks; None if it asks nothing now. Raises Refused if it is another call than the link's."""
    service = service_of(request)
    asked = await asked_now(service, link.plan_id, link.step_id)
    if asked is None:
        return None
    if asked.digest != link.digest:
        text = (
            f"what step '{link.step_id}' would do has changed since this link was sent, which decides about that only"
        )
        raise Refused(f"{text}; a new message has a new link", "STALE_DIGEST")
    [shown] = await cards_of(service, [await with_values(asked, service.settings)])
    return shown


async def _taken(links: Links, link: Link, held: ExitStack) -> Callable[[str], None]:
    """Hold the link until `held` ends; if another request does, wait for what it decides. Raises LinkRefused."""

    async def take() -> Any:
        try:
            return held.enter_context(links.use(link))
        except LinkRefused as error:
            if error.code != "LINK_BUSY":
                raise
            return None

    try:
        used: Callable[[str], None] = await until(take, PATIENCE, every=0.1)
    except TimeoutError:
        raise LinkRefused("the link is being used at this moment; look again", "LINK_BUSY") from None
    return used


routes = [Route("/decide/{token}", opened), Route("/decide/{token}", decided, methods=["POST"])]

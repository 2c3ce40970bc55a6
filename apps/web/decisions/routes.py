"""The pages and forms for decisions: `/inbox`, one decision, approve, deny, answer. Each calls the command's function.

A form names the digest of the call that its page showed, so that a decision is about nothing else: if the call has
changed, or somebody else was first, nothing is decided and the page shows how things stand now, with what was typed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.decisions.asked import asked_now, cards_of, news, schema_of_args
from plansurvive.apps.web.decisions.cards import answer_form, args_form, groups
from plansurvive.apps.web.decisions.inbox import Inbox, outcome
from plansurvive.apps.web.decisions.live import events
from plansurvive.apps.web.decisions.other_args import final_args, shown_once_more
from plansurvive.client import runs
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.decide.changed_call import is_same
from plansurvive.client.decisions import Choice
from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.forms.schema_form import Field
from plansurvive.client.page.pages import done
from plansurvive.client.verbs.calls import with_values
from plansurvive.plans.definition.questions import misfit
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.flow.ids import is_pattern
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.text.lists import number_of

MOST_CARDS = 100
"""Decisions shown in the inbox, oldest first; the others come up once these are decided."""
MAX_COMMENT = 2_000
OK = 200
REFUSED = 409
INVALID = 422


@dataclass(frozen=True)
class Typed:
    """What a person has typed into the form of a decision that was not accepted."""

    notice: str = ""
    """Why it was not accepted."""
    comment: str = ""
    answer: Field | None = None
    args: Field | None = None
    code: int = OK
    """The HTTP status of the page."""
    edits: bool = False
    """The form for other arguments is open."""


async def inbox(request: Request) -> Response:
    """Everything that waits for a person, oldest first; with `mine`, what this one may decide."""
    service, viewer = service_of(request), _mine(request)
    everything = await inbox_of(request).now()
    waiting = everything.of(viewer) if viewer is not None else everything
    cards = await cards_of(service, waiting.decisions[:MOST_CARDS])
    more = len(waiting.decisions) - len(cards)
    return page(request, "inbox.html", nav="inbox", waiting=waiting, groups=groups(cards), more=more,
                is_mine=viewer is not None, others=len(everything.decisions) - len(waiting.decisions))  # fmt: skip


async def live(request: Request) -> Response:
    """Server-sent events: the keys of what waits, whenever that changes. Adds nothing to any history."""
    return StreamingResponse(events(inbox_of(request), _mine(request)), media_type="text/event-stream")


def _mine(request: Request) -> Viewer | None:
    """Whose decisions are wanted; None: everybody's."""
    return person_of(request).viewer if "mine" in request.query_params else None


async def decision(request: Request) -> Response:
    """One decision on a page of its own: where links in messages lead."""
    return await _shown(request, request.path_params["plan_id"], request.path_params["step_id"], Typed())


@needs(Role.APPROVER)
async def approve(request: Request) -> Response:
    """Approve a step, or all items of a loop that were shown."""
    return await _decided(request, approved=True)


@needs(Role.APPROVER)
async def deny(request: Request) -> Response:
    """Deny a step, or all items of a loop that were shown."""
    return await _decided(request, approved=False)


@needs(Role.APPROVER)
async def answer(request: Request) -> Response:
    """Answer a question. What does not fit is refused at its field, and everything typed is kept."""
    form, plan = await form_of(request), request.path_params["plan_id"]
    step, digest = text_of(form, "step"), text_of(form, "digest")
    service = service_of(request)
    client = await service.client()
    asked = await asked_now(service, plan, step)
    if asked is None or not asked.is_question or (digest or None) != (asked.digest or None):
        return await _shown(request, plan, step, Typed(await news(service, plan, step, asked), code=REFUSED))
    found = answer_form(asked.args).read(form.multi_items())
    why = misfit(asked.args, found.value) if found.is_valid else ""
    if not found.is_valid or why:
        notice = why or ("The answer was not sent: see the fields marked ✗." if found.is_complete else "")
        return await _shown(request, plan, step, Typed(notice, answer=found.field, code=INVALID))
    try:
        author = person_of(request).author
        said = await runs.answer(client, plan, step, found.value, digest=digest or None, **author)
    except NoWorker as error:
        said = error.message
    except (Refused, PlanClosed) as error:
        return await _shown(request, plan, step, Typed(error.message, answer=found.field, code=REFUSED))
    return _done(request, form, plan, said)


async def _decided(request: Request, *, approved: bool) -> Response:
    form, plan, person = await form_of(request), request.path_params["plan_id"], person_of(request)
    step, comment = text_of(form, "step"), text_of(form, "comment").strip()[:MAX_COMMENT]
    choice = Choice(step_id=step, comment=comment, **person.author)
    wanted = {"remember": "always", "override": "override"}
    choice = choice.model_copy(update={name: approved and bool(text_of(form, field)) for name, field in wanted.items()})
    try:
        if is_pattern(step):
            return await _decided_all(request, form, choice, approved=approved)
        choice = choice.model_copy(update=_about(form))
        if approved and text_of(form, "edited"):
            return await _with_other_args(request, form, choice)
        said = await _sent(request, plan, choice, approved=approved)
    except (Refused, PlanClosed, InvalidPlan) as error:
        return await _shown(request, plan, step, Typed(error.message, comment, code=REFUSED))
    return _done(request, form, plan, said)


async def _sent(request: Request, plan: str, choice: Choice, *, approved: bool) -> str:
    """The plan's sentence about the decision; where no worker has taken it, what becomes of it."""
    client = await service_of(request).client()
    try:
        return await (runs.approve if approved else runs.deny)(client, plan, choice)
    except NoWorker as error:
        return error.message


async def _with_other_args(request: Request, form: FormData, choice: Choice) -> Response:
    """Approve with the arguments of a form, once they were shown. Raises Refused."""
    service, plan, step = service_of(request), request.path_params["plan_id"], choice.step_id
    asked = await asked_now(service, plan, step)
    if asked is None or (choice.digest and asked.digest != choice.digest):
        notice = await news(service, plan, step, asked)
        return await _shown(request, plan, step, Typed(notice, choice.comment, code=REFUSED))
    if not asked.takes_args:  # the page has no form for it
        raise Refused(f"what step '{step}' asks can only be approved as it is, or denied", "INVALID_ARGS")
    schema, final = await schema_of_args(service, plan, asked.tool), final_args(form)
    if final is None:
        found = args_form(schema, asked.args).read(form.multi_items())
        notice = "" if found.is_valid or not found.is_complete else "Nothing was approved: see the fields marked ✗."
        if found.is_valid and is_same(asked, found.value):
            notice = "Nothing was approved: these are the arguments of the call. Change them, or approve it as it is."
        if not found.is_valid or notice:
            typed = Typed(notice, choice.comment, args=found.field, code=INVALID, edits=True)
            return await _shown(request, plan, step, typed)
        return await shown_once_more(request, asked, found.value, choice.comment)
    typed = Typed("", choice.comment, args=args_form(schema, final).field, edits=True)
    if text_of(form, "back"):
        return await _shown(request, plan, step, typed)
    try:
        said = await _sent(request, plan, choice.model_copy(update={"args": final}), approved=True)
    except (Refused, PlanClosed, InvalidPlan) as error:
        return await _shown(request, plan, step, replace(typed, notice=error.message, code=REFUSED))
    return _done(request, form, plan, said)


def _about(form: FormData) -> dict[str, Any]:
    """What the decision is about: the digest that the page showed, or the version where a plan has no digests.

    Raises Refused: a decision that does not say is not sent.
    """
    digest, version = text_of(form, "digest"), text_of(form, "version")
    if digest:
        return {"digest": digest}
    if version.isascii() and version.isdigit() and len(version) < 10:
        return {"version": int(version)}
    raise Refused("the form does not say what was decided on; read it here and decide again", "DIGEST_REQUIRED")


async def _decided_all(request: Request, form: FormData, choice: Choice, *, approved: bool) -> Response:
    """Decide about the items of a loop whose calls were shown."""
    digests = [each for each in form.getlist("digests") if isinstance(each, str)]
    if not digests:
        raise Refused("the form does not say which calls were shown; look at them again", "DIGEST_REQUIRED")
    plan = request.path_params["plan_id"]
    client = await service_of(request).client()
    try:
        count, refused = await runs.decide_all(client, plan, choice, approved=approved, digests=digests)
    except Refused as error:
        inbox_of(request).forget(plan)
        return done(request, "/inbox", error.message)
    said = f"{number_of(count, 'item')} of '{choice.step_id}' {'approved' if approved else 'denied'}"
    more = "".join(f"; not decided: {name}: {why}" for name, why in list(refused.items())[:5])
    return _done(request, form, plan, said + more)


def _done(request: Request, form: FormData, plan: str, said: str) -> Response:
    inbox_of(request).forget(plan)
    return done(request, plan_url(plan) if text_of(form, "next") == "plan" else "/inbox", said)


async def _shown(request: Request, plan: str, step: str, typed: Typed) -> Response:
    """The page of one decision as it stands now, with what was typed. Raises as `runs.brief`."""
    service = service_of(request)
    asked = await asked_now(service, plan, step)
    shown, args, became = None, None, ""
    if asked is None:
        became = await outcome(await service.client(), plan, step)
    else:
        [shown] = await cards_of(service, [await with_values(asked, service.settings)], answer=typed.answer)
        if shown.card.takes_args:
            args = typed.args or args_form(await schema_of_args(service, plan, asked.tool), asked.args).field
    return page(
        request, "decide.html", status=typed.code, nav="inbox", plan=plan, step=step, shown=shown, args=args,
        typed=typed, became=became,
    )  # fmt: skip


def inbox_of(request: Request) -> Inbox:
    """The watcher of the page that serves a request."""
    state = request.app.state
    if getattr(state, "inbox", None) is None:
        state.inbox = Inbox(service_of(request))
    found: Inbox = state.inbox
    return found


def plan_url(plan: str) -> str:
    """The path of a plan's page."""
    return f"/plans/{quote(plan, safe='')}"


def decision_url(plan: str, step_id: str) -> str:
    """The path of the page that decides about a step: what a message links to."""
    return f"{plan_url(plan)}/steps/{quote(step_id, safe='')}/decide"


routes = [
    Route("/inbox", inbox),
    Route("/inbox/live", live),
    Route("/plans/{plan_id}/steps/{step_id:path}/decide", decision),
    Route("/plans/{plan_id}/approve", approve, methods=["POST"]),
    Route("/plans/{plan_id}/deny", deny, methods=["POST"]),
    Route("/plans/{plan_id}/answer", answer, methods=["POST"]),
]

"""One plan: how it stands, its steps, what it awaits, what comes next; and it changes as the plan does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.apps.web.common.rendering import page, render, url_of
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.decisions.asked import cards_of
from plansurvive.apps.web.decisions.cards import groups
from plansurvive.apps.web.plans.rows import ON_A_PAGE, Listed, done_of, key_of, listed
from plansurvive.client import runs
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of
from plansurvive.client.feature import views_of_features
from plansurvive.client.ids import plan_id
from plansurvive.client.page.pages import done
from plansurvive.client.runs import BriefView, Summary
from plansurvive.client.undos import Undo, undo_of
from plansurvive.client.verbs.pending import Pending, number_in, of_plan
from plansurvive.client.watchers.stream import EVERY, KEEP, json_message, message, streamed
from plansurvive.client.watchers.watcher import PATIENCE, Watcher, updates
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.model.plan import Problem
from plansurvive.plans.run import ENDED, PlanStatus, Status
from plansurvive.plans.views.models import BriefStep, listed_steps
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.summary import why_failed

STATES = ("waiting", *(status.value for status in Status))
"""What the list of steps can be narrowed to."""
MAX_CARDS = 30
"""Decisions that the page of a plan shows; the inbox has all."""
MAX_CHANGED = 500
"""Rows in one message; if more changed, the browser loads the list again."""


class End(NamedTuple):
    """How a plan ended."""

    summary: Summary | None = None
    resumed_by: str = ""
    """The latest run that resumed it."""
    problems: Sequence[Problem] = ()
    """Why its workers refused it."""
    undo: Undo | None = None
    """What was undone of it since."""


class Shown:
    """Which steps one viewer's page lists."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.state = query.get("state", "") if query.get("state") in STATES else ""
        self.text = query.get("q", "")[:200].strip()
        number = query.get("page", "1")
        self.number = max(1, int(number)) if number.isascii() and number.isdigit() and len(number) < 5 else 1

    @property
    def is_narrowed(self) -> bool:
        """Whether only some steps are listed: which ones may change at any time."""
        return bool(self.state or self.text)

    def fitting(self, steps: Sequence[BriefStep]) -> list[BriefStep]:
        """The steps that fit, of all pages."""
        text = self.text.casefold()
        return [
            step
            for step in steps
            if (not self.state or self.state == ("waiting" if step.awaiting else step.status.value))
            and (not text or text in step.id.casefold() or text in step.description.casefold())
        ]

    def of_page(self, steps: Sequence[BriefStep]) -> list[BriefStep]:
        """Those of this page."""
        return self.fitting(steps)[(self.number - 1) * ON_A_PAGE : self.number * ON_A_PAGE]

    def query(self, number: int | None = None) -> str:
        """The query string of a page of the list."""
        return url_of("", q=self.text, state=self.state, page=str(number or self.number))


async def show(request: Request) -> Response:
    """The page of a plan."""
    watcher, view = await _watched(request)
    context = await _context(request, watcher, view) | await _asked(request, watcher, view)
    return page(request, "plan.html", nav="plans", tab="steps", **context)


async def decisions(request: Request) -> Response:
    """What the plan and those below it ask people, a fragment."""
    watcher, view = await _watched(request)
    return page(request, "_plan_decisions.html", plan=view.id or plan_id(watcher.plan),
                **await _asked(request, watcher, view))  # fmt: skip


async def steps(request: Request) -> Response:
    """The list of steps alone, a fragment."""
    watcher, view = await _watched(request)
    return page(request, "_steps.html", **_listed(request, watcher, view))


async def live(request: Request) -> Response:
    """What changes, as it changes: rows and head as HTML for htmx, and the event `steps` as JSON for the graph."""
    watcher, _ = await _watched(request)
    cursor = request.headers.get("last-event-id") or request.query_params.get("since", "")

    async def messages() -> AsyncIterator[str]:
        async for text in updates(watcher, cursor, EVERY, KEEP, lambda since: _told(request, watcher, since)):
            yield text
        yield message(_head(request, watcher, await _end(request, watcher)), number=watcher.cursor)
        yield message("", event="ended", number=watcher.cursor)

    return streamed(messages())


@needs(Role.OPERATOR)
async def act(request: Request) -> Response:
    """Pause, unpause, cancel, interrupt, or forget files, by form."""
    await form_of(request)
    plan, action = request.path_params["plan_id"], request.url.path.rpartition("/")[2]
    client, author = await service_of(request).client(), person_of(request).author
    said = f"plan '{plan_id(plan)}': {SAID.get(action, '')}"
    if action == "cancel":
        await runs.cancel(client, plan)
    elif action == "interrupt":
        await runs.interrupt(client, plan, **author)
    else:
        said = await {"pause": runs.pause, "unpause": runs.unpause, "clear-session": runs.clear_session}[action](
            client, plan, **author
        )
    return done(request, url_of(f"/plans/{plan}"), said)


ACTIONS = ("pause", "unpause", "cancel", "interrupt", "clear-session")
SAID = {
    "cancel": "cancellation requested; running steps clean up first",
    "interrupt": "it ends once running steps have finished, and can be resumed",
}


async def _watched(request: Request) -> tuple[Watcher, BriefView]:
    watcher = await service_of(request).watcher(request.path_params["plan_id"])
    return watcher, await watcher.first()


async def _context(request: Request, watcher: Watcher, view: BriefView) -> dict[str, Any]:
    return _listed(request, watcher, view) | _of_head(watcher, view, await _end(request, watcher))


def _listed(request: Request, watcher: Watcher, view: BriefView) -> dict[str, Any]:
    shown = Shown(request)
    fitting = shown.fitting(view.steps)
    rows = [listed(step, watcher.live.get(step.id)) for step in shown.of_page(view.steps)]
    return {
        "plan": view.id or plan_id(watcher.plan), "rows": rows, "shown": shown, "fitting": len(fitting),
        "pages": -(-len(fitting) // ON_A_PAGE), "states": STATES, "cursor": watcher.cursor, "view": view,
    }  # fmt: skip


def _of_head(watcher: Watcher, view: BriefView, end: End) -> dict[str, Any]:
    summary, resumed_by, problems, undo = end
    status = PlanStatus.CANCELLED if watcher.is_terminated and view.status not in ENDED else view.status
    return {
        "plan": view.id or plan_id(watcher.plan), "view": view, "plan_status": status.value, "done": done_of(view),
        "phase": "" if status in ENDED else _phase(view), "waits": _waits(view.steps), "trouble": watcher.trouble,
        "waiting": number_in(view), "summary": summary, "why_failed": why_failed,
        "next_actions": next_actions(summary, resumed_by=resumed_by, undone=undo is not None, views=views_of_features())
        if summary else [],
        "resumed_by": resumed_by, "undo": undo, "problems": problems, "has_ended": watcher.has_ended,
        "key_of": key_of, "is_terminated": watcher.is_terminated,
    }  # fmt: skip


def _phase(view: BriefView) -> str:
    """That it rolls back, or runs its `finally`, in place of `running`; empty if it does neither."""
    return PHASES.get(view.closing.phase, "") if view.closing else ""


def _waits(steps: Sequence[BriefStep]) -> list[Listed]:
    """What waits for something else than a decision, items of loops among it, as far as the brief view names them."""
    return [each for each in map(listed, listed_steps(steps)) if each.step.awaiting and not each.asks]


async def _asked(request: Request, watcher: Watcher, view: BriefView) -> dict[str, Any]:
    """The decisions to take in the plan and below it, oldest first, as cards; the first ones if there are many."""
    items = list[Pending]()
    if number_in(view) and not watcher.has_ended:
        with suppress(PlanError):  # a worker or a child plan that does not answer: the head says so
            items = await of_plan(watcher.client, watcher.plan, PATIENCE)
    items.sort(key=lambda item: (item.since is None, item.since or 0))
    cards = await cards_of(service_of(request), items[:MAX_CARDS]) if items else []
    return {"groups": groups(cards), "more_asked": len(items) - len(cards)}


async def _end(request: Request, watcher: Watcher) -> End:
    """How the plan ended; nothing while it runs."""
    if watcher.view is None or watcher.view.status not in ENDED:
        return End()
    client = await service_of(request).client()
    summary, links = await asyncio.gather(runs.summary(client, watcher.plan), runs.links(client, watcher.plan))
    problems = (await watcher.whole()).problems if summary.problems else []
    undo = await undo_of(client, watcher.plan, summary.ended_at)
    return End(summary, (links.resumed_by or [""])[-1], problems, undo)


def _head(request: Request, watcher: Watcher, end: End) -> str:
    view = watcher.view
    return render(request, "_plan_head.html", partial=True, **_of_head(watcher, view, end)) if view else ""


def _told(request: Request, watcher: Watcher, since: int) -> str:
    """The messages for one viewer: what changed since a version."""
    view = watcher.view
    if view is None:
        return ""
    shown, names = Shown(request), watcher.changed(since)
    moved = [step for step in shown.of_page(view.steps) if step.id in names]
    reload = since < 0 or watcher.order_changed(since) or len(moved) > MAX_CHANGED or (shown.is_narrowed and names)
    plan, news = view.id or plan_id(watcher.plan), [] if reload else moved
    rows = (listed(step, watcher.live.get(step.id)) for step in news)
    parts = [render(None, "_step_row.html", partial=True, plan=plan, listed=each) for each in rows]
    if watcher.head_changed(since):
        parts.insert(0, _head(request, watcher, End()))
    states = {step.id: listed(step).row.sign for step in view.steps if step.id in names}
    data = {"plan": view.status.value, "seq": view.seq, "counts": view.counts, "steps": states, "all": since < 0}
    found = json_message(data, "steps", watcher.cursor)
    found += json_message({}, "reload", watcher.cursor) if reload else ""
    return found + (message("\n".join(parts), number=watcher.cursor) if parts else "")


routes = [
    Route("/plans/{plan_id}", show),
    Route("/plans/{plan_id}/list", steps),
    Route("/plans/{plan_id}/decisions", decisions),
    Route("/plans/{plan_id}/live", live),
    *(Route(f"/plans/{{plan_id}}/{name}", act, methods=["POST"]) for name in ACTIONS),
]

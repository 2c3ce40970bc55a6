"""`/schedules`: list, one with its next times and runs, create, update, trigger, pause, resume, backfill, delete."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.apps.schedules.control import (
    backfill_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
    trigger_schedule,
)
from plansurvive.apps.schedules.create import Changes, Rules, create_schedule, update_schedule
from plansurvive.apps.schedules.server import checked_name
from plansurvive.apps.schedules.spec import OVERLAPS, BadSchedule, Timing, catchup_of, overlap_of, spec_of, zone_of
from plansurvive.apps.schedules.views import list_schedules, show_schedule
from plansurvive.apps.schedules.words import clock
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.forms.schema_form import MORE
from plansurvive.client.page.pages import Link, done, page, ready, site_of
from plansurvive.client.requests.plan_form import Choices, Source, checked, choices_of, requested, source_of
from plansurvive.client.requests.roots import Roots
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.text.lists import number_of

NAV = "schedules"
LINKS = {
    "navigation": Link(NAV, "/schedules", "Schedules"),
    "start": Link(NAV, "/schedules/new", "Run it at set times …"),
}
TEXTS = ("name", "cron", "every", "calendar", "timezone", "jitter", "start", "end", "overlap", "catchup", "limit",
         "note", "pause_on_failure", "paused")  # fmt: skip


async def listed(request: Request) -> Response:
    """All schedules."""
    client = await site_of(request).client()
    found = sorted([each async for each in list_schedules(client)], key=lambda each: each.name)
    return page(request, "schedules/schedules.html", nav=NAV, schedules=found, at=at)


async def show(request: Request) -> Response:
    """One schedule."""
    return await _shown(request, request.path_params["name"])


@needs(Role.OPERATOR)
async def new_page(request: Request) -> Response:
    """The form of a schedule for a file or template that the address names."""
    query = request.query_params
    return _new(request, Source(file=query.get("file", ""), template=query.get("template", "")), Choices(), {})


@needs(Role.OPERATOR)
async def new(request: Request) -> Response:
    """The form of a schedule for what was chosen to start; or create it."""
    form = await form_of(request)
    source, choices, typed = source_of(form), choices_of(form), _typed(form)
    if text_of(form, "do") != "create" or text_of(form, MORE):
        return _new(request, source, choices, typed)
    try:
        name = await _create(request, source, choices, typed)
    except PlanError as error:
        return _new(request, source, choices, typed, on_the_page(error))
    return done(request, f"/schedules/{quote(name, safe='')}", f"Schedule {name} is made.")


@needs(Role.OPERATOR)
async def update(request: Request) -> Response:
    """Change when a schedule runs, and how it treats its runs."""
    form, name = await form_of(request), request.path_params["name"]
    typed = _typed(form)
    try:
        changes = Changes(
            timing=timing_of(typed) if any(typed[each] for each in ("cron", "every", "calendar")) else None,
            overlap=typed["overlap"] or None,
            catchup=catchup_of(typed["catchup"]) if typed["catchup"] else None,
            note=typed["note"] or None,
            limit=_limit(typed["limit"]),
        )
        if changes == Changes():
            raise PlanError("There is nothing to change: edit a field first.", "BAD_SCHEDULE")
        await update_schedule(await site_of(request).client(), name, changes)
    except PlanError as error:
        return await _shown(request, name, typed, on_the_page(error))
    return _done(request, f"Schedule {name} is changed.")


@needs(Role.OPERATOR)
async def trigger(request: Request) -> Response:
    """Start a run now."""
    form, name = await form_of(request), request.path_params["name"]
    client = (await ready(request)).client
    found = await trigger_schedule(client, name, text_of(form, "overlap") or None)
    return _done(request, f"Started {found.plan_id}." if found.plan_id else f"No run yet: {found.why}.")


@needs(Role.OPERATOR)
async def pause(request: Request) -> Response:
    """Start no further runs."""
    form, name = await form_of(request), request.path_params["name"]
    note = text_of(form, "note").strip() or f"paused by {person_of(request).name}"
    await pause_schedule(await site_of(request).client(), name, note)
    return _done(request, f"Schedule {name} is paused.")


@needs(Role.OPERATOR)
async def resume(request: Request) -> Response:
    """Start runs again."""
    form, name = await form_of(request), request.path_params["name"]
    note = text_of(form, "note").strip() or f"resumed by {person_of(request).name}"
    await resume_schedule(await site_of(request).client(), name, note)
    return _done(request, f"Schedule {name} is no longer paused.")


@needs(Role.OPERATOR)
async def backfill(request: Request) -> Response:
    """Start the runs that were due in the past and did not run."""
    form, name = await form_of(request), request.path_params["name"]
    typed = {each: text_of(form, each).strip() for each in ("from", "to", "how")}
    try:
        client = (await ready(request)).client
        times = await backfill_schedule(client, name, typed["from"], typed["to"], typed["how"] or "buffer")
    except PlanError as error:
        return await _shown(request, name, typed, on_the_page(error))
    return _done(request, f"{number_of(len(times), 'run')} to make up for.")


@needs(Role.OPERATOR)
async def delete(request: Request) -> Response:
    """Delete a schedule; its runs stay."""
    await form_of(request)
    name = request.path_params["name"]
    await delete_schedule(await site_of(request).client(), name)
    return done(request, "/schedules", f"Schedule {name} is deleted.")


def timing_of(typed: dict[str, str]) -> Timing:
    """When it runs; rules of one kind on one line each. Raises BadSchedule."""
    found = Timing(
        cron=_lines(typed["cron"]), every=_lines(typed["every"]), calendar=_lines(typed["calendar"]),
        timezone=typed["timezone"] or "UTC", jitter=typed["jitter"] or None, start=typed["start"] or None,
        end=typed["end"] or None,
    )  # fmt: skip
    spec_of(found)
    return found


def at(time: Any, zone: str) -> str:
    """A time in a schedule's time zone."""
    try:
        return clock(time, zone_of(zone))
    except PlanError:  # one that the server knows and this machine does not
        return clock(time, zone_of("UTC"))


async def _create(request: Request, source: Source, choices: Choices, typed: dict[str, str]) -> str:
    settings, name = site_of(request).settings, checked_name(typed["name"].strip())
    timing = timing_of(typed)
    rules = Rules(
        overlap=typed["overlap"] or "skip", catchup=catchup_of(typed["catchup"] or None),
        pause_on_failure=bool(typed["pause_on_failure"]), limit=_limit(typed["limit"]), paused=bool(typed["paused"]),
        note=typed["note"],
    )  # fmt: skip
    overlap_of(rules.overlap)
    wanted = requested(source, choices, settings)
    client, local, _ = await ready(request)
    title = wanted.plan.title or wanted.file.title
    await create_schedule(
        client, name, {**wanted.file.data, "title": title} if title else wanted.file.data, timing, rules=rules,
        options=wanted.options(settings, local=local, **person_of(request).starter), queue=settings.task_queue,
        source=wanted.file.name,
    )  # fmt: skip
    return name


def _new(
    request: Request, source: Source, choices: Choices, typed: dict[str, str], error: PlanError | None = None
) -> Response:
    settings = site_of(request).settings
    found = checked(source, choices, settings)
    problems = list(error.problems) if isinstance(error, InvalidPlan) else [*found.problems, *found.inputs.problems]
    refused = None if isinstance(error, InvalidPlan) else error or found.refused
    return page(
        request, "schedules/schedule_new.html", status=422 if error else 200, nav=NAV, found=found,
        source=source, choices=choices, typed=typed, problems=problems, error=refused,
        roots=Roots.of(settings), overlaps=list(OVERLAPS),
    )  # fmt: skip


async def _shown(
    request: Request, name: str, typed: dict[str, str] | None = None, error: PlanError | None = None
) -> Response:
    found = await show_schedule(await site_of(request).client(), name)
    return page(
        request, "schedules/schedule.html", status=422 if error else 200, nav=NAV, schedule=found, at=at,
        error=error, typed=typed or {}, overlaps=list(OVERLAPS),
    )  # fmt: skip


def _typed(form: FormData) -> dict[str, str]:
    return {name: text_of(form, name).strip() for name in TEXTS}


def _lines(text: str) -> list[str]:
    return [each.strip() for each in text.splitlines() if each.strip()]


def _limit(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 10):
        raise PlanError("the number of runs is a whole number from 1", "BAD_SCHEDULE")
    return int(text)


def _done(request: Request, said: str) -> Response:
    return done(request, f"/schedules/{quote(request.path_params['name'], safe='')}", said)


routes = [
    Route("/schedules", listed),
    Route("/schedules/new", new_page),
    Route("/schedules/new", new, methods=["POST"]),
    Route("/schedules/{name}", show),
    Route("/schedules/{name}/update", update, methods=["POST"]),
    Route("/schedules/{name}/trigger", trigger, methods=["POST"]),
    Route("/schedules/{name}/pause", pause, methods=["POST"]),
    Route("/schedules/{name}/resume", resume, methods=["POST"]),
    Route("/schedules/{name}/backfill", backfill, methods=["POST"]),
    Route("/schedules/{name}/delete", delete, methods=["POST"]),
]


FIELDS = {
    "cron": "Cron", "every": "Every", "calendar": "Calendar", "timezone": "Time zone", "start": "No runs before",
    "end": "No runs after", "jitter": "Later by a random time up to",
    "catchup": "How late a missed run is still started",
    "overlap": "When a run is due while one is in progress", "from": "From", "to": "To",
}  # fmt: skip
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(FIELDS)})(?![\w-])")


def on_the_page(error: PlanError) -> PlanError:
    """The error as the page shows it."""
    if not isinstance(error, BadSchedule):
        return error
    return BadSchedule(_OPTION.sub(lambda found: f"“{FIELDS[found[1]]}”", error.message))

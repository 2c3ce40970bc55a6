"""`/plans/{id}/resume` and `/plans/{id}/rerun`: an ended plan in a new run, with what a person changes for it.

Fields are changed by lines such as `write.args.path=b.txt`, as `--set` takes them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.access import Role
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.access.people import needs, person_of
from plansurvive.client.page.pages import done
from plansurvive.client.runs import Started
from plansurvive.client.verbs.resume import would_run
from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.editing.step_places import setting_of
from plansurvive.plans.errors import PlanError

MAX_LINES = 200
"""Fields that one form changes."""


@needs(Role.OPERATOR)
async def resume_page(request: Request) -> Response:
    """What would run again, and the form to change it."""
    return await _shown(request, "resume", {})


@needs(Role.OPERATOR)
async def resume(request: Request) -> Response:
    """Continue an ended plan or agent in a new run."""
    form, person, name = await form_of(request), person_of(request), request.path_params["plan_id"]

    def start(client: Client, changes: list[Replacement]) -> Awaitable[Started]:
        return runs.resume(client, name, person.name, changes, verified=person.verified)

    return await _act(request, "resume", form, start)


@needs(Role.OPERATOR)
async def rerun_page(request: Request) -> Response:
    """Which steps to run again, with all that depends on them, or which one alone."""
    return await _shown(request, "rerun", {"step": request.query_params.get("step", "")})


@needs(Role.OPERATOR)
async def rerun(request: Request) -> Response:
    """Run steps of an ended plan again in a new run."""
    form, person, name = await form_of(request), person_of(request), request.path_params["plan_id"]
    steps = [each.strip() for each in [text_of(form, "step"), *text_of(form, "more").splitlines()] if each.strip()]
    alone = text_of(form, "how") == "only"

    def start(client: Client, changes: list[Replacement]) -> Awaitable[Started]:
        if alone and len(steps) > 1:
            raise PlanError("a step that runs alone is one; leave out the further steps", "BAD_USAGE")
        only, start_at = (steps[0], None) if alone and steps else (None, steps)
        return runs.rerun(
            client, name, only=only, start_at=start_at, by=person.name, changes=changes, verified=person.verified
        )

    return await _act(request, "rerun", form, start)


async def _act(
    request: Request, what: str, form: FormData, start: Callable[[Client, list[Replacement]], Awaitable[Started]]
) -> Response:
    typed = {key: text_of(form, key) for key in ("set", "step", "more", "how")}
    try:
        client = await service_of(request).client()
        started = await start(client, replacements(typed["set"]))
    except PlanError as error:
        return await _shown(request, what, typed, error)
    before = request.path_params["plan_id"]
    return done(request, f"/plans/{quote(started.plan_id, safe='')}", f"{started.plan_id} continues {before}.")


async def _shown(request: Request, what: str, typed: dict[str, Any], error: PlanError | None = None) -> Response:
    client, name = await service_of(request).client(), request.path_params["plan_id"]
    view = await runs.show(client, name)
    later = (await runs.links(client, name)).resumed_by
    steps = [path for step in view.steps for path, _ in walk_step(step)]
    return page(
        request, "drafts/again.html", status=409 if error else 200, nav="plans", plan=view, what=what, typed=typed,
        error=error, later=later, steps=steps, is_done=what == "resume" and await _is_done(client, name),
    )  # fmt: skip


async def _is_done(client: Client, name: str) -> bool:
    """Whether there is nothing to resume."""
    try:
        await would_run(client, name)
    except PlanError as error:
        return error.code == "NOTHING_TO_DO"
    return False


def replacements(text: str) -> list[Replacement]:
    """One change per line: `STEP.args.NAME=VALUE` or `budget.LIMIT=VALUE`; a value is JSON, else text.

    Raises PlanError BAD_USAGE.
    """
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    if len(lines) > MAX_LINES:
        raise PlanError(f"at most {MAX_LINES} fields can be changed at once", "BAD_USAGE")
    return [_replacement(each) for each in lines]


def _replacement(line: str) -> Replacement:
    step_id, path, value = setting_of(line)
    if value is None or not step_id or not path:
        raise PlanError(f"{line!r} is neither STEP.args.NAME=VALUE nor budget.LIMIT=VALUE", "BAD_USAGE")
    found: Any = value
    with suppress(ValueError):
        found = json.loads(value)
    return Replacement(step_id=step_id, path=path, value=found)

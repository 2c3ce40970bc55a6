"""`/plans/{id}/draft/steps/{step}` and `/plans/{id}/draft/add`: the form of one step.

A form is about a version. If the plan has another one when it is sent, nothing is changed: the page shows what has, and
the form again with what the person typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.drafts.memory import loaded, memory_of
from plansurvive.apps.web.drafts.review_page import version_of
from plansurvive.apps.web.drafts.reviewed import Reviewed
from plansurvive.apps.web.drafts.rows import Row, rows_of, why_not_edited
from plansurvive.apps.web.drafts.step_form import StepForm, choices_of, form_of_new, form_of_step, unused_id
from plansurvive.apps.web.drafts.versions import Since
from plansurvive.client import runs
from plansurvive.client.access import Role
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.access.people import needs, person_of
from plansurvive.client.page.pages import done
from plansurvive.features.editing.step_draft import Unwritable
from plansurvive.plans.definition.parsing import Unreadable
from plansurvive.plans.editing.edits import AddStep, Edit
from plansurvive.plans.errors import InvalidPlan, PlanError, Refused
from plansurvive.plans.model import Problem
from plansurvive.runtime.plan_files.text import data_of

FIELD = "field."
"""Before the names of the step's fields in the form."""
STALE = "STALE_VERSION"


@dataclass(frozen=True)
class Typed:
    """What a person typed beside the fields of a step to add."""

    place: str = ""
    text: str = ""
    """The step as YAML or JSON."""
    why: str = ""


@needs(Role.OPERATOR)
async def edit_page(request: Request) -> Response:
    """The form of a step."""
    found, name = await loaded(request), request.path_params["step_id"]
    return _step_page(request, found, form_of_step(found, name))


@needs(Role.OPERATOR)
async def edit(request: Request) -> Response:
    """Save the form of a step."""
    form, name = await form_of(request), request.path_params["step_id"]
    found, version = await loaded(request), version_of(text_of(form, "version"))
    if version != found.version and version is not None:
        return _on_newer(request, found, form, version)
    filled = form_of_step(found, name).with_texts(_texts(form))
    try:
        edits = filled.edits()
    except Unwritable as error:
        return _step_page(request, found, _marked(filled, error), status=422)
    if not edits:
        return done(request, _draft_url(request), "Nothing was changed.")
    try:
        edited = await _send(request, edits, found.version, text_of(form, "why"))
    except PlanError as error:
        if error.code == STALE:
            return _on_newer(request, await loaded(request), form, found.version)
        return _step_page(request, found, filled, error=error, status=409, why=text_of(form, "why"))
    return _saved(request, edited, found.version)


@needs(Role.OPERATOR)
async def add_page(request: Request) -> Response:
    """The form of a step to add: of `tool`, at `place`; without a tool, the text of a step."""
    found, query = await loaded(request), request.query_params
    tool = query.get("tool", "")
    form = form_of_new(found, tool, found.tools.get(tool), unused_id(found), {})
    return _add_page(request, found, form, typed=Typed(query.get("place", "")))


@needs(Role.OPERATOR)
async def add(request: Request) -> Response:
    """Add the step of a form."""
    form = await form_of(request)
    found, version = await loaded(request), version_of(text_of(form, "version"))
    tool, place, text = text_of(form, "tool"), text_of(form, "place"), text_of(form, "text")
    filled = form_of_new(found, tool, found.tools.get(tool), unused_id(found), {}).with_texts(_texts(form))
    typed = Typed(place, text, text_of(form, "why"))
    since = memory_of(request).versions.since(found, version) if version is not None else None
    if since is not None:
        error: PlanError = Refused(f"The plan is at version {found.version} now. Nothing was added.", STALE)
        return _add_page(request, found, filled, error=error, since=since, status=409, typed=typed)
    try:
        [step] = filled.edits() if tool else [_of_text(text)]
    except Unwritable as wrong:
        return _add_page(request, found, _marked(filled, wrong), status=422, typed=typed)
    except PlanError as wrong_text:
        return _add_page(request, found, filled, error=wrong_text, status=422, typed=typed)
    try:
        edited = await _send(request, [_placed(step, place)], found.version, typed.why)
    except PlanError as problem:
        return _add_page(request, await loaded(request), filled, error=problem, status=409, typed=typed)
    return _saved(request, edited, found.version)


def _on_newer(request: Request, found: Reviewed, form: FormData, version: int) -> Response:
    """The form on the newer plan: what was typed stays."""
    since = memory_of(request).versions.since(found, version)
    error = Refused(f"Not saved: the plan is at version {found.version} now, this was written for {version}.", STALE)
    name = request.path_params["step_id"]
    now = form_of_step(found, name)
    before = memory_of(request).versions.at(found, version)
    old = form_of_step(before, name) if before is not None and before.has(name) else now
    merged = old.with_texts(_texts(form)).newer(now)
    return _step_page(request, found, merged, error=error, since=since, status=409, why=text_of(form, "why"))


async def _send(request: Request, edits: list[Edit], version: int, why: str) -> runs.Edited:
    client = await service_of(request).client()
    author = person_of(request).author
    return await runs.edit(
        client, request.path_params["plan_id"], edits, expect_version=version, why=why[:2_000], **author
    )


def _saved(request: Request, edited: runs.Edited, version: int) -> Response:
    said = f"Saved as version {edited.version}."
    return done(request, f"{_draft_url(request)}?since={version}", " ".join([said, *edited.warnings]))


def _step_page(
    request: Request,
    found: Reviewed,
    form: StepForm,
    *,
    error: PlanError | None = None,
    since: Since | None = None,
    status: int = 200,
    why: str = "",
) -> Response:
    name = request.path_params["step_id"]
    context = {"plan": found.view, "found": found, "form": form, "error": error, "since": since, "why": why}
    return page(
        request, "drafts/step.html", status=status, nav="plans", step_id=name, field=FIELD, choices_of=choices_of,
        why_not=why_not_edited(found, name), problems=_problems(found, name, error), asked=None,
        asks=[each for each in found.asking if each.step_id == name], **context,
    )  # fmt: skip


def _add_page(
    request: Request,
    found: Reviewed,
    form: StepForm,
    *,
    typed: Typed,
    error: PlanError | None = None,
    since: Since | None = None,
    status: int = 200,
) -> Response:
    return page(
        request, "drafts/add.html", status=status, nav="plans", plan=found.view, found=found, form=form,
        place=typed.place, text=typed.text, why=typed.why, error=error, since=since, field=FIELD, choices_of=choices_of,
        places=_places(found), tools=sorted(found.tools), asked=None,
    )  # fmt: skip


def _places(found: Reviewed) -> list[tuple[str, str]]:
    """Where a step can be added: value and label."""
    steps = found.run.plan.steps
    first = [(f"before {steps[0].id}", "first")] if steps else []
    after = [(f"after {row.id}", f"after {row.id}") for row in _flat(rows_of(found).rows)]
    return [("", "at the end"), *first, *after]


def _flat(rows: list[Row]) -> Iterator[Row]:
    for row in rows:
        yield row
        for group in row.inside:
            yield from _flat(group.rows)


def _placed(step: Edit, place: str) -> Edit:
    kind, _, anchor = place.partition(" ")
    return step.model_copy(update={kind: anchor}) if kind in ("after", "before") and anchor else step


def _of_text(text: str) -> AddStep:
    """The step that was written as YAML or JSON. Raises InvalidPlan."""
    try:
        data = data_of("<pasted>", text)
    except Unreadable as error:
        raise InvalidPlan([error.problem]) from None
    if not isinstance(data, dict):
        raise InvalidPlan(
            [Problem(code="PLAN_SCHEMA", message="write one step: fields and values with id, tool, args")]
        )
    return AddStep(op="add", step=data)


def _texts(form: FormData) -> dict[str, str]:
    """The fields of the step, by their names in the step's form."""
    return {
        name.removeprefix(FIELD): value
        for name, value in form.multi_items()
        if name.startswith(FIELD) and isinstance(value, str)
    }


def _marked(form: StepForm, error: Unwritable) -> StepForm:
    return StepForm(form.draft, form.rest, form.texts, error.reasons)


def _problems(found: Reviewed, name: str, error: PlanError | None) -> list[Problem]:
    """What is wrong with the step, and what an edit that was refused would have made wrong."""
    refused = error.problems if isinstance(error, InvalidPlan) else []
    return [*refused, *found.problems_by_step.get(name, [])]


def _draft_url(request: Request) -> str:
    return f"/plans/{quote(request.path_params['plan_id'], safe='')}/draft"

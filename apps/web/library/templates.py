"""`/templates`: the project's templates and the user's own: list, one with its versions, compare, save, delete."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client.access import Role, needs
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff
from plansurvive.client.differences.texts import Side, text_rows
from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import is_of_workers
from plansurvive.client.local_tools import known_tools
from plansurvive.client.page.pages import done
from plansurvive.client.plan_file import check
from plansurvive.client.requests.plan_form import Source, source_of
from plansurvive.client.requests.roots import Roots
from plansurvive.features.templates.known import Known
from plansurvive.features.templates.names import named, new_name
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.checks.will_ask import waived
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model.template import SHORT, Template

NAV = "templates"


async def listed(request: Request) -> Response:
    """All templates."""
    return page(request, "library/templates.html", nav=NAV, templates=_known(request).every(), short=SHORT)


async def show(request: Request) -> Response:
    """One template: inputs, versions, what it waives, its content; compared with another version if one is named."""
    known = _known(request)
    found = known.find(request.path_params["name"])
    plan = check(found.data, known_tools(known.settings))[0]
    other = request.query_params.get("to", "")
    first = known.find(other) if other else None
    rows = text_rows(_side(first), _side(found)) if first else []
    return page(
        request, "library/template.html", nav=NAV, saved=found, versions=known.versions(found), short=SHORT,
        waives=waived(plan) if plan else [], other=first, rows=rows, diff=_steps(first, found) if first else None,
    )  # fmt: skip


@needs(Role.OPERATOR)
async def new(request: Request) -> Response:
    """The form to save a plan that was chosen or pasted."""
    form = await form_of(request)
    return _new(request, source_of(form), {})


@needs(Role.OPERATOR)
async def save(request: Request) -> Response:
    """Save a plan under a name; other content than before becomes a new version."""
    form = await form_of(request)
    source, settings = source_of(form), service_of(request).settings
    typed = {name: text_of(form, name) for name in ("name", "description", "where")}
    try:
        name = new_name(typed["name"].strip())
        file = source.read(settings)
        plan, wrong = check(file.data, known_tools(settings))
        if plan is None or any(not is_of_workers(each) for each in errors(wrong)):
            raise PlanRefused(wrong, file)
        store = _known(request).store(user=typed["where"] == "user")
        version, changed = store.save(name, file.text, typed["description"].strip() or None)
    except PlanError as error:
        return _new(request, source, typed, error)
    said = f"Saved {name}@{version[:SHORT]}." if changed else f"Nothing has changed: {name}@{version[:SHORT]}."
    return done(request, f"/templates/{quote(f'{name}@{version[:SHORT]}', safe='')}", said)


@needs(Role.OPERATOR)
async def delete(request: Request) -> Response:
    """Delete a template with all its versions, or the version that the address names."""
    form = await form_of(request)
    wanted = named(request.path_params["name"])
    known = _known(request)
    store = known.store(user=text_of(form, "where") == "user")
    if wanted.hash:
        wanted = wanted._replace(hash=known.find(request.path_params["name"]).hash)
    store.delete(wanted.name, wanted.hash)
    what = f"{wanted.name}@{wanted.hash[:SHORT]}" if wanted.hash else f"{wanted.name}, with all its versions"
    return done(request, "/templates", f"Deleted {what}.")


def _new(request: Request, source: Source, typed: dict[str, str], error: PlanError | None = None) -> Response:
    roots = Roots.of(service_of(request).settings)
    return page(
        request, "library/template_new.html", status=422 if error else 200, nav=NAV, source=source, typed=typed,
        error=error, root=roots.paths[0],
    )  # fmt: skip


def _known(request: Request) -> Known:
    settings = service_of(request).settings
    return Known.of(settings, str(Roots.of(settings).paths[0]))


def _side(template: Template) -> Side:
    return Side(template.label, template.text)


def _steps(first: Template, second: Template) -> PlanDiff | None:
    """The difference step by step; None if one of the two is not a valid plan."""
    old, new = read_plan(first.data), read_plan(second.data)
    return None if isinstance(old, list) or isinstance(new, list) else plan_diff(old, new)

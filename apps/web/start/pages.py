"""`/start` and `/start/plan`: choose a plan, see its problems and what will ask, fill in its inputs, start it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.client import runs
from plansurvive.client.access import Role, needs, person_of
from plansurvive.client.access.forms import form_of, text_of
from plansurvive.client.apps import part
from plansurvive.client.errors import PlanRefused
from plansurvive.client.forms.schema_form import MORE
from plansurvive.client.page.pages import done, ready
from plansurvive.client.requests.llm import require_llm
from plansurvive.client.requests.plan_form import (
    Choices,
    Source,
    checked,
    choices_of,
    pasted,
    requested,
    source_of,
    time_limit_of,
)
from plansurvive.client.requests.plan_request import Request as PlanRequest
from plansurvive.client.requests.roots import Listed, Roots
from plansurvive.client.requests.workspaces import named
from plansurvive.client.runs import Started
from plansurvive.features.forecast import words
from plansurvive.features.forecast.forecast import forecast
from plansurvive.features.forecast.model import Forecast
from plansurvive.features.templates.known import Known
from plansurvive.features.templates.listing import Listed as Template
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.run import Options

ON_FAILURE = ("ask_llm", "block", "stop")


@needs(Role.OPERATOR)
async def choose(request: Request) -> Response:
    """What can be started."""
    return _choose(request)


@needs(Role.OPERATOR)
async def plan_page(request: Request) -> Response:
    """The form of one file or template, from an address."""
    query = request.query_params
    source = Source(file=query.get("file", ""), template=query.get("template", ""))
    return await _shown(request, source, Choices())


@needs(Role.OPERATOR)
async def plan(request: Request) -> Response:
    """Check the plan of a form, or start it."""
    form = await form_of(request)
    source, choices = source_of(form), choices_of(form)
    todo = "" if text_of(form, MORE) else text_of(form, "do")
    if todo not in ("start", "forecast"):
        return await _shown(request, source, choices)
    try:
        wanted = requested(source, choices, service_of(request).settings)
        if todo == "forecast":
            return await _shown(request, source, choices, foreseen=await _foreseen(request, wanted))
        started = await start(request, wanted)
    except PlanError as error:
        return await _shown(request, source, choices, error)
    name = quote(started.plan_id, safe="")
    return done(request, f"/plans/{name}/draft" if choices.review else f"/plans/{name}", f"Started {started.plan_id}.")


@needs(Role.OPERATOR)
async def make(request: Request) -> Response:
    """Have the LLM write a plan; its review waits for it."""
    form, service = await form_of(request), service_of(request)
    wish, name = text_of(form, "request").replace("\r\n", "\n"), text_of(form, "id").strip()
    typed = {"request": wish, "id": name} | {each: text_of(form, each) for each in ("workspace", "timeout")}
    on_failure = text_of(form, "onFailure", "ask_llm")
    try:
        limit = time_limit_of(typed["timeout"])  # first: the rest may start a worker
        client, local, keeps_worker = await ready(request)
        require_llm(service.settings, own_worker=keeps_worker)
        workspace = Roots.of(service.settings).workspace(typed["workspace"])
        options = Options(
            workspace=named(workspace, service.settings, local=local), review=True, timeout=limit,
            **person_of(request).starter,
        )  # fmt: skip
        started = await runs.make(
            client, wish, options=options, plan_id=name or None, queue=service.settings.task_queue,
            fields={"defaults": {"onFailure": on_failure if on_failure in ON_FAILURE else "ask_llm"}},
        )  # fmt: skip
    except PlanError as error:
        return _choose(request, typed, error)
    return done(request, f"/plans/{quote(started.plan_id, safe='')}/draft")


@needs(Role.OPERATOR)
async def import_(request: Request) -> Response:
    """Make a plan of a GitHub Actions workflow or a Serverless Workflow document, to be checked and started."""
    form, service = await form_of(request), service_of(request)
    text = text_of(form, "document").replace("\r\n", "\n")
    try:
        file = pasted(text, Roots.of(service.settings).paths[0])
        made, texts = part("importers", "commands").imported(file), part("importers", "common.plan_text")
    except PlanError as error:
        return _choose(request, {"document": text}, error)
    rows = [texts.row(each) for each in made.report.entries]
    return await _shown(
        request, Source(text=texts.text_of(made, "a pasted document")), Choices(review=True), notes=rows
    )


async def start(request: Request, wanted: PlanRequest) -> Started:
    """Start a checked plan as `plan start` does. Raises as `client.runs.start`."""
    service = service_of(request)
    client, local, keeps_worker = await ready(request)
    if wanted.unknown_tools and keeps_worker:
        raise PlanRefused(wanted.unknown_tools, wanted.file)
    return await runs.start(
        client,
        wanted.file.data,
        options=wanted.options(service.settings, local=local, **person_of(request).starter),
        plan_id=wanted.flags.id,
        name=wanted.file.title,
        queue=service.settings.task_queue,
    )


def _choose(request: Request, typed: dict[str, str] | None = None, error: PlanError | None = None) -> Response:
    settings = service_of(request).settings
    roots = Roots.of(settings)
    templates = Known.of(settings, str(roots.paths[0])).every()
    return page(
        request, "start/choose.html", status=422 if error else 200, nav="start", roots=roots, typed=typed or {},
        choices=offered(roots.files(), templates, request.query_params.get("find", "")), error=error,
        on_failure=ON_FAILURE, model=settings.model,
    )  # fmt: skip


async def _foreseen(request: Request, wanted: PlanRequest) -> Forecast:
    """What the plan would do if it were started now, as `plan run --dry-run` says; without a server as well."""
    service = service_of(request)
    try:
        client = await service.client()
    except PlanError:
        client = None
    return await forecast(wanted, service.settings, client, by=person_of(request).name)


async def _shown(
    request: Request, source: Source, choices: Choices, error: PlanError | None = None,
    notes: list[str] | None = None, foreseen: Forecast | None = None,
) -> Response:  # fmt: skip
    settings = service_of(request).settings
    try:
        found = checked(source, choices, settings)
    except PlanError as problem:
        if source.text:
            raise
        return _choose(request, error=problem)
    problems = list(error.problems) if isinstance(error, InvalidPlan) else [*found.problems, *found.inputs.problems]
    return page(
        request, "start/plan.html", status=422 if error else 200, nav="start", found=found, source=source,
        choices=choices, error=None if isinstance(error, InvalidPlan) else error or found.refused, problems=problems,
        roots=Roots.of(settings), notes=notes or [], foreseen=foreseen, words=words,
    )  # fmt: skip


FEW = 12
"""So many are listed as they are; of more, only those at the top of a folder's tree are unfolded."""


@dataclass(frozen=True)
class Folder:
    """The plan files of one folder."""

    root: Path
    name: str
    """Relative to its root; empty for the root itself."""
    files: tuple[Listed, ...]
    is_open: bool


@dataclass(frozen=True)
class Offered:
    """What the page lists."""

    find: str
    folders: list[Folder]
    templates: list[Template]
    rest: list[Template]
    """Templates that are folded away."""
    count: int
    """How many files and templates there are without the filter."""

    @property
    def has_filter(self) -> bool:
        """Whether there is so much that a filter helps."""
        return bool(self.find) or self.count > FEW


def offered(files: Sequence[Listed], templates: Sequence[Template], find: str = "") -> Offered:
    """Files and templates whose names have the words of `find`, in whatever case."""
    words = find.casefold().split()[:20]
    kept = [each for each in files if _has(each.name, words)]
    ordered = sorted(kept, key=lambda each: (str(each.root), _folder(each) != ".", _folder(each), each.name))
    grouped = [(*key, tuple(found)) for key, found in groupby(ordered, key=lambda each: (each.root, _folder(each)))]
    folders = [
        Folder(root, "" if name == "." else name, found, len(kept) <= FEW or (name == "." and len(found) <= FEW))
        for root, name, found in grouped
    ]
    named = [each for each in templates if _has(f"{each.name} {each.description}", words)]
    return Offered(find[:200], folders, named[:FEW], named[FEW:], len(files) + len(templates))


def _folder(each: Listed) -> str:
    return str(PurePosixPath(each.name).parent)


def _has(name: str, words: Sequence[str]) -> bool:
    return all(word in name.casefold() for word in words)

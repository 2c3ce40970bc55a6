"""`plan run` and `plan start`: from a plan file to a running plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from plansurvive.client.cli.follow.ctrl_c import unless_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.review import screen_here
from plansurvive.client.cli.terminal import environment, output, session, signals
from plansurvive.client.cli.terminal.more_options import NONE, Given, with_more
from plansurvive.client.cli.terminal.options import AsJson, File
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.signals import INTERRUPTED
from plansurvive.client.cli.terminal.spans import seconds_of
from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import choices_of, refresh_tools
from plansurvive.client.page.served_page import without_key
from plansurvive.client.plan_file import PlanFile, load
from plansurvive.client.requests.plan_request import Flags, Request, prepared
from plansurvive.client.unserved import unserved
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import MAX_PARALLEL
from plansurvive.runtime.sides import sides
from plansurvive.runtime.task_queues import serves_this_machine

Workspace = Annotated[str | None, typer.Option("--workspace", metavar="DIR", help="Directory the tools work in.")]
Yes = Annotated[bool, typer.Option("--yes", help="Approve every step in advance.")]
MaxParallel = Annotated[
    int | None,
    typer.Option("--max-parallel", metavar="N", min=1, max=MAX_PARALLEL, help="Maximum number of steps in parallel."),
]
Review = Annotated[bool, typer.Option("--review", help="Start in review; it runs after `plan begin`.")]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="The plan fails unless it has ended by then: 90s, 30m, 2h, 7d."),
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", metavar="NAME=VALUE", help="Value of a plan input; repeatable.")
]
Priority = Annotated[
    int | None, typer.Option("--priority", metavar="N", min=1, max=5, help="1 is served first, 5 last; default: 3.")
]
Fairness = Annotated[
    str | None,
    typer.Option("--fairness", metavar="KEY[=WEIGHT]", help="Whose share of the workers it uses; default: yours."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what it would do, and start nothing.")]
NewId = Annotated[str | None, typer.Option("--id", metavar="ID", help="Id of the plan; cannot be reused.")]


def _from_file(action: Callable[[Request, bool], None]) -> Callable[..., None]:
    """Make a command that takes a plan file and the options shared by `run` and `start`."""

    @with_more("run")
    def command(
        file: File,
        workspace: Workspace = None,
        yes: Yes = False,
        max_parallel: MaxParallel = None,
        review: Review = False,
        inputs: Inputs = None,
        plan_id: NewId = None,
        priority: Priority = None,
        fairness: Fairness = None,
        timeout: Timeout = None,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        more: Given = NONE,
    ) -> None:
        limit = seconds_of(timeout, "--timeout")
        flags = Flags(
            workspace, yes, max_parallel, review, tuple(inputs or ()), plan_id, {}, priority, fairness, timeout=limit,
            choices=choices_of(more),
        )  # fmt: skip
        request = request_of(load(file), flags)
        foretell(request, as_json) if dry_run else action(request, as_json)

    command.__doc__ = action.__doc__
    return command


def request_of(found: PlanFile, flags: Flags) -> Request:
    """The start request of what was read, checked against the tools of today. Raises as `prepared` does."""
    settings = environment.settings()
    signals.run(refresh_tools(settings, found.data))
    return prepared(found, flags, settings)


@_from_file
def run(request: Request, as_json: bool) -> None:
    """Start a plan and follow it to its end."""
    to_its_end(request, as_json)


def foretell(request: Request, as_json: bool) -> None:
    """Show what a checked plan would do, instead of starting it."""
    for side in sides("dry_run"):
        side.show(request, as_json=as_json)
        return
    raise PlanError("--dry-run is not part of this program; leave it out to start the plan", "BAD_USAGE")


def to_its_end(request: Request, as_json: bool) -> NoReturn:
    """Start a checked plan and follow it to its end. Exits with the command's exit code."""
    begun: list[Started] = []
    raise typer.Exit(exit_code(unless_ctrl_c(lambda here: _run(here, request, begun, as_json), begun)))


@_from_file
def start(request: Request, as_json: bool) -> None:
    """Start a plan and return; it runs in the background."""
    session.run(lambda here: _start_and_print(here, request, as_json), starts=True)


async def _run(here: Connected, request: Request, begun: list[Started], as_json: bool) -> Summary:
    started = await started_from(here, request)
    begun.append(started)
    link = here.link(started.workflow_id)
    screen = screen_here() if request.flags.review and not as_json else None
    if request.flags.review and screen is None:
        _say_in_review(started.plan_id)
    if as_json:
        summary = await runs.wait(here.client, started.plan_id)
        output.show_json(started_as_json(started, link) | {"summary": summary.to_json()})
        return summary
    output.show("\n".join(filter(None, (f"plan {started.plan_id}", link, _page(here, started)))))
    if screen is not None:
        await runs.drafted(here.client, started.plan_id, output.say)
        if not await screen.show(here, started.plan_id, until_begun=True):
            _say_in_review(started.plan_id)
            raise typer.Exit(INTERRUPTED)
    summary = await follow(here, started.plan_id, as_json=False)
    show_summary(summary)
    return summary


def _say_in_review(name: str) -> None:
    rows = [f"  review  plan review {name}", f"  begin   plan begin {name}", f"  page    plan review {name} --web"]
    output.say("\n".join(["The plan is in review.", *rows]))


async def _start_and_print(here: Connected, request: Request, as_json: bool) -> None:
    started = await started_from(here, request)
    link = here.link(started.workflow_id)
    if as_json:
        output.show_json(started_as_json(started, link))
        return
    rows = [f"plan      {started.plan_id}", f"workflow  {started.workflow_id}"]
    page = _page(here, started)
    rows += [f"ui        {link}"] if link else []
    output.show("\n".join(rows + ([f"page      {page}"] if page else [])))


def _page(here: Connected, started: Started) -> str | None:
    """The plan's page as it may be printed: a pipe may lead to a log that others read, so it gets no key."""
    page = here.page(started.plan_id)
    return page if page is None or sys.stdout.isatty() else without_key(page)


async def started_from(here: Connected, request: Request) -> Started:
    """Start a checked plan. Says its warnings; raises PlanRefused for tools that this machine's worker lacks."""
    if request.unknown_tools and here.keeps_worker:
        raise PlanRefused(request.unknown_tools, request.file)
    if request.warnings or request.unknown_tools:
        remarks = [problem.model_copy(update={"severity": "warning"}) for problem in request.unknown_tools]
        output.show_problems(request.warnings + remarks, request.file.name)
    chosen = await request.chosen(here.client, output.say)
    local = here.connection.is_on_this_machine and await serves_this_machine(here.client, here.settings.task_queue)
    started = await runs.start(
        here.client,
        request.file.data,
        options=request.options(here.settings, local=local, by=session.author(), chosen=chosen),
        plan_id=request.flags.id,
        name=request.file.title,
        queue=here.settings.task_queue,
    )
    for sentence in await unserved(here.client, request.plan, here.settings.task_queue):
        output.say(sentence)
    return started


def started_as_json(started: Started, link: str | None) -> dict[str, object]:
    """What `--json` says of a plan that was started."""
    return started.model_dump(mode="json") | {"ui": link}

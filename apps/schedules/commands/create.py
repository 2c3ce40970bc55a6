"""`plan schedule create` and `update`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.apps.schedules.commands.show import next_rows
from plansurvive.apps.schedules.create import Changes, Rules, create_schedule, update_schedule
from plansurvive.apps.schedules.server import checked_name
from plansurvive.apps.schedules.spec import BadSchedule, Timing, catchup_of, overlap_of, spec_of
from plansurvive.apps.schedules.views import ScheduleView, show_schedule
from plansurvive.client.cli.check import show_asking
from plansurvive.client.cli.run import Inputs, MaxParallel, Timeout, Workspace, Yes
from plansurvive.client.cli.terminal import environment, output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.spans import seconds_of
from plansurvive.client.errors import PlanRefused
from plansurvive.client.local_tools import known_tools
from plansurvive.client.requests.plan_request import Flags, Request, prepare
from plansurvive.client.requests.workspaces import asking_in
from plansurvive.features.templates.start import names, prepare_template
from plansurvive.plans.definition.checks.will_ask import Asking
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.connect import Origin
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import serves_this_machine

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
PlanFile = Annotated[
    str | None, typer.Argument(metavar="[FILE]", help="Plan file, JSON or YAML; - reads standard input.")
]
Template = Annotated[
    str | None,
    typer.Option(
        "--template", metavar="NAME[@HASH]", help="A template instead of a file; its newest version, or one.",
        autocompletion=names,
    ),
]  # fmt: skip
Cron = Annotated[
    list[str] | None,
    typer.Option("--cron", metavar="EXPR", help='Minute hour day month weekday: "0 7 * * mon-fri"; repeatable.'),
]
Every = Annotated[
    list[str] | None, typer.Option("--every", metavar="TIME", help="Interval: 1h, 1h30m, 1h@15m; repeatable.")
]
Calendar = Annotated[
    list[str] | None,
    typer.Option("--calendar", metavar="TEXT", help='"hour=7 minute=30 dayOfWeek=mon-fri", or JSON; repeatable.'),
]
Zone = Annotated[str | None, typer.Option("--timezone", metavar="ZONE", help="Such as Europe/Berlin; default: UTC.")]
Jitter = Annotated[str | None, typer.Option("--jitter", metavar="TIME", help="Start later, by a random time up to it.")]
Start = Annotated[str | None, typer.Option("--start", metavar="TIME", help="No runs before: ISO 8601.")]
End = Annotated[str | None, typer.Option("--end", metavar="TIME", help="No runs after: ISO 8601.")]
Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap", metavar="POLICY", help="A run is due while one is in progress: skip, buffer, cancel, allow."
    ),
]
Catchup = Annotated[
    str | None,
    typer.Option("--catchup", metavar="TIME", help="How late a missed run is still started; default: 1d."),
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Runs after which it starts no more.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A remark, shown with the schedule.")]


def create(
    name: Name,
    file: PlanFile = None,
    template: Template = None,
    cron: Cron = None,
    every: Every = None,
    calendar: Calendar = None,
    timezone: Zone = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    overlap: Overlap = None,
    catchup: Catchup = None,
    pause_on_failure: Annotated[
        bool, typer.Option("--pause-on-failure", help="Pause when a run does not complete.")
    ] = False,
    limit: Limit = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused.")] = False,
    note: Note = None,
    workspace: Workspace = None,
    yes: Yes = False,
    max_parallel: MaxParallel = None,
    timeout: Timeout = None,
    inputs: Inputs = None,
    as_json: AsJson = False,
) -> None:
    """Create a schedule that runs a plan, from a file or a template. Later changes of either do not count."""
    timing = _timing(cron, every, calendar, timezone, jitter, start, end)
    rules = Rules(
        overlap=overlap or "skip", catchup=catchup_of(catchup), pause_on_failure=pause_on_failure,
        limit=limit, paused=paused, note=note or "",
    )  # fmt: skip
    _checked(name, timing, rules)
    most = seconds_of(timeout, "--timeout")
    flags = Flags(workspace, yes, max_parallel, False, tuple(inputs or ()), None, timeout=most)
    request = _request(file, template, flags, environment.settings())
    _show_created(*session.run(lambda here: _create(here, name, request, timing, rules), starts=True), as_json)


def update(
    name: Name,
    cron: Cron = None,
    every: Every = None,
    calendar: Calendar = None,
    timezone: Zone = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    overlap: Overlap = None,
    catchup: Catchup = None,
    limit: Limit = None,
    note: Note = None,
    as_json: AsJson = False,
) -> None:
    """Change when a schedule runs. What is given of its times replaces all of them; the plan stays."""
    given = (cron, every, calendar)
    if any((timezone, jitter, start, end)) and not any(given):
        raise BadSchedule("say all of when it runs: with --cron, --every or --calendar")
    timing = _timing(cron, every, calendar, timezone, jitter, start, end) if any(given) else None
    changes = Changes(
        timing=timing, overlap=overlap, catchup=catchup_of(catchup) if catchup else None, note=note, limit=limit
    )
    if changes == Changes():
        raise BadSchedule("nothing to change; `plan schedule update --help` shows what can be")

    async def act(here: Connected) -> ScheduleView:
        await update_schedule(here.client, name, changes)
        return await show_schedule(here.client, name)

    found = session.run(act, worker=False)
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    _show_times(found)


def _request(file: str | None, template: str | None, flags: Flags, settings: Settings) -> Request:
    if (file is None) == (template is None):
        raise PlanError(
            "name the schedule and a plan file (`plan schedule create NAME FILE`) or, with --template, a template",
            "BAD_USAGE",
        )
    if template is not None:
        return prepare_template(template, flags, settings)
    return prepare(file or "", flags, settings)


def _timing(
    cron: Sequence[str] | None,
    every: Sequence[str] | None,
    calendar: Sequence[str] | None,
    timezone: str | None,
    jitter: str | None,
    start: str | None,
    end: str | None,
) -> Timing:
    return Timing(
        cron=list(cron or ()),
        every=list(every or ()),
        calendar=list(calendar or ()),
        timezone=timezone or "UTC",
        jitter=jitter,
        start=start,
        end=end,
    )


async def _create(
    here: Connected, name: str, request: Request, timing: Timing, rules: Rules
) -> tuple[ScheduleView, list[Asking]]:
    if request.unknown_tools and here.keeps_worker:
        raise PlanRefused(request.unknown_tools, request.file)
    remarks = [problem.model_copy(update={"severity": "warning"}) for problem in request.unknown_tools]
    if request.warnings or remarks:
        output.show_problems(request.warnings + remarks, request.file.name)
    local = here.connection.is_on_this_machine and await serves_this_machine(here.client, here.settings.task_queue)
    options = request.options(here.settings, local=local, by=session.author())
    await create_schedule(
        here.client,
        name,
        _titled(request),
        timing,
        rules=rules,
        options=options,
        queue=here.settings.task_queue,
        source=request.file.name,
    )
    if here.connection.origin is Origin.EMBEDDED:
        output.say("It runs while the server and the worker do: `plan up --install` keeps them running.")
    if here.settings.decisions == "signed":
        output.say("The worker asks for signed starts; the schedule is signed with the key of this state directory.")
    return await show_schedule(here.client, name), _asking(request, options.workspace, here.settings)


def _titled(request: Request) -> dict[str, Any]:
    """The plan with a title: its runs are told apart by it in lists."""
    data: dict[str, Any] = request.file.data
    return data if request.plan.title or not request.file.title else {**data, "title": request.file.title}


def _asking(request: Request, workspace: str | None, settings: Settings) -> list[Asking]:
    where = Path(workspace) if workspace else Path.cwd()
    return asking_in(request.plan, where, known_tools(settings), settings, approve_all=request.flags.yes)


def _show_created(made: ScheduleView, asking: Sequence[Asking], as_json: bool) -> None:
    if as_json:
        output.show_json(made.model_dump(mode="json") | {"asks": [each.model_dump(mode="json") for each in asking]})
        return
    _show_times(made)
    if asking:
        output.say("A run will wait until a person has decided; `plan pending` lists the decisions.")
        show_asking(asking)


def _show_times(found: ScheduleView) -> None:
    when = f"{'; '.join(found.when)}, {line(found.timezone)}"
    output.show("\n".join([f"schedule {line(found.name)}: {when}", *next_rows(found)]))


def _checked(name: str, timing: Timing, rules: Rules) -> None:
    """Raise BadSchedule for what is wrong without asking a server: before anything is started."""
    checked_name(name)
    spec_of(timing)
    overlap_of(rules.overlap)

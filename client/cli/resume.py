"""Commands that stop a plan and continue it in a new run: interrupt, resume, rerun."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.client.cli.follow.ctrl_c import unless_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, By, Id, complete_step
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.ids import plan_id
from plansurvive.client.requests.workspaces import named
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.resume import WouldRun, would_run
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.editing.step_places import setting_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line, quoted

Follow = Annotated[bool, typer.Option("--follow", help="Follow the new run to its end.")]
From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="STEP",
        help="Rerun this step and everything that depends on it; repeatable, and 'each[*]' are all items.",
        autocompletion=complete_step,
    ),
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="STEP", help="Rerun this step and nothing else.", autocompletion=complete_step),
]
Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", metavar="DIR", help="Continue in this directory, whichever the plan worked in (WORKSPACE_MOVED)."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="STEP.args.x=V", help="Change an argument, or budget.calls; JSON or text."),
]

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show which steps would run and which are kept, and start nothing.")
]
SHOWN = 20
"""Steps of a kind that a dry run names."""


def interrupt(plan: Id, by: By = None, as_json: AsJson = False) -> None:
    """Stop a plan so that it can be resumed. Running steps finish first; continue with `plan resume`."""
    session.run(lambda here: runs.interrupt(here.client, plan, author(by)))
    name = plan_id(plan)
    sentence = f"stops when the running steps have finished; continue with: plan resume {name}"
    if as_json:
        output.show_json({"planId": name, "message": sentence})
    else:
        output.show(f"{name}: {sentence}")


def resume(
    plan: Id, sets: Set = None, workspace: Workspace = None, by: By = None, follow_it: Follow = False,
    dry_run: DryRun = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Continue an ended plan in a new run. Failed, blocked and unstarted steps run; the others keep their results."""
    changes = [_replacement(text) for text in sets or ()]
    if dry_run:
        _show(plan, session.run(lambda here: would_run(here.client, plan, changes=changes)), as_json)
        return

    async def start(here: Connected) -> Started:
        place = _place(here, workspace)
        return await runs.resume(here.client, plan, author(by), changes, workspace=place)

    _start(plan, start, follow_it, as_json)


def rerun(
    plan: Id, start_at: From = None, only: Only = None, sets: Set = None, workspace: Workspace = None, by: By = None,
    follow_it: Follow = False, dry_run: DryRun = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run steps of an ended plan again, in a new run. The other steps keep their results."""
    changes = [_replacement(text) for text in sets or ()]
    if dry_run:
        found = session.run(
            lambda here: would_run(here.client, plan, reruns=True, start_at=start_at, only=only, changes=changes)
        )
        _show(plan, found, as_json)
        return

    async def start(here: Connected) -> Started:
        place = _place(here, workspace)
        return await runs.rerun(
            here.client, plan, start_at=start_at, only=only, changes=changes, by=author(by), workspace=place
        )

    _start(plan, start, follow_it, as_json)


def _show(plan: str, found: WouldRun, as_json: bool) -> None:
    """What the new run would do."""
    if as_json:
        output.show_json(found.model_dump(mode="json"))
        return
    items = [f"{name}: {number_of(count, 'item')} not started" for name, count in found.items.items()]
    inside = [name for name in found.read_again if name not in found.runs]
    runs = [f"{name}{_condition(found, name)}{_file(found, name)}" for name in [*found.runs, *inside]]
    first = next(iter(found.keep_read), "")
    again = [f"to read it again: plan rerun {plan_id(plan)} --from {quoted(first)}"] if first else []
    skips = [f"{name}: condition not met: {when}" for name, when in found.skips.items()]
    stale = [
        f"{name} keeps what it read from '{path}', which has changed since" for name, path in found.keep_read.items()
    ]
    for what, steps, last in (
        ("would run", runs, items), ("skips", skips, []), ("keeps", found.keeps, []), ("note", stale, again),
        ("leaves out", found.leaves_out, []),
    ):  # fmt: skip
        more = [f"and {len(steps) - SHOWN} more"] if len(steps) > SHOWN else []
        for at, name in enumerate([*steps[:SHOWN], *more, *last]):
            output.show(f"  {what if not at else '':<11} {line(name)}")
    output.say(f"Dry run: plan {found.plan_id} was not started.")


def _condition(found: WouldRun, name: str) -> str:
    """What decides whether a step runs; empty: it does."""
    if name not in found.conditions:
        return ""
    return f": only if {found.conditions[name]}, which depends on {', '.join(found.decided_by[name])}"


def _file(found: WouldRun, name: str) -> str:
    """Why a step that is done runs again; empty: it is not done."""
    path = found.read_again.get(name)
    return f": its file '{path}' has changed since" if path is not None else ""


def _place(here: Connected, workspace: Path | None) -> str | None:
    """The directory of `--workspace`; None: the plan stays in its own. Raises as `named` does."""
    if workspace is None:
        return None
    return named(str(workspace), here.settings, local=here.connection.is_on_this_machine)


def _start(plan: str, start: Callable[[Connected], Awaitable[Started]], follow_it: bool, as_json: bool) -> None:
    begun: list[Started] = []

    async def start_and_follow(here: Connected) -> Summary | None:
        started = await start(here)
        begun.append(started)
        link, is_object = here.link(started.workflow_id), as_json and not follow_it
        if not is_object:
            _report(plan, started, link)
        if not follow_it and (await runs.summary(here.client, plan)).problems:
            # The plan was refused. Its new run may be as well: not to be found out later, by a second `plan resume`.
            await runs.drafted(here.client, started.plan_id, output.say)
        if is_object:
            output.show_json(started.model_dump(mode="json") | {"resumes": plan_id(plan), "ui": link})
        return await follow(here, started.plan_id, as_json=as_json) if follow_it else None

    summary = unless_ctrl_c(start_and_follow, begun)
    if summary is not None:
        if not as_json:
            show_summary(summary)
        raise typer.Exit(exit_code(summary))


def _report(plan: str, started: Started, link: str | None) -> None:
    rows = [f"plan      {started.plan_id}", f"resumes   {plan_id(plan)}", f"workflow  {started.workflow_id}"]
    output.show("\n".join(rows + ([f"ui        {link}"] if link else [])))


def _replacement(text: str) -> Replacement:
    """Parse `STEP.args.path=VALUE` or `budget.LIMIT=VALUE`; the value is JSON, else text."""
    step_id, path, value = setting_of(text)
    if value is None or not step_id or not path:
        raise PlanError(f"--set {text!r} is neither STEP.args.NAME=VALUE nor budget.LIMIT=VALUE", "BAD_USAGE")
    found: Any = value
    with suppress(ValueError):
        found = json.loads(value)
    return Replacement(step_id=step_id, path=path, value=found)

"""`plan template`: save plans under a name, list, show, compare, run and delete them.

A project's templates are those of the workspace: --workspace, else PLANS_WORKSPACE, else the current directory.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from plansurvive.client.cli.run import (
    DryRun,
    Fairness,
    Inputs,
    MaxParallel,
    NewId,
    Priority,
    Review,
    Timeout,
    Yes,
    foretell,
    to_its_end,
)
from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.more_options import NONE, Given, with_more
from plansurvive.client.cli.terminal.options import AsJson, File, group
from plansurvive.client.cli.terminal.spans import seconds_of
from plansurvive.client.differences.texts import text_rows
from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import choices_of, is_of_workers
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import check, load
from plansurvive.client.requests.plan_request import Flags
from plansurvive.features.templates import views
from plansurvive.features.templates.find import find_in
from plansurvive.features.templates.known import Known
from plansurvive.features.templates.names import named, new_name
from plansurvive.features.templates.start import names, prepare_template
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.checks.will_ask import waived
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model.template import SHORT
from plansurvive.plans.text.safe_text import line

app = group("Save plans under a name, with versions, and run them.")

Project = Annotated[
    str | None,
    typer.Option("--workspace", metavar="DIR", help="Directory with the project's templates; default: the current."),
]
User = Annotated[bool, typer.Option("--user", help="Among your own templates, not the project's.")]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, _ and -.")]


Name = Annotated[
    str, typer.Argument(metavar="NAME[@HASH]", help="The newest version, or exactly one.", autocompletion=names)
]


@app.command()
def save(
    name: NewName,
    file: File,
    user: User = False,
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="What it is for, in a sentence.")
    ] = None,
    workspace: Project = None,
    as_json: AsJson = False,
) -> None:
    """Save a plan file under a name. Other content than before becomes a new version, and the newest."""
    settings = environment.settings()
    found = load(file)
    plan, wrong = check(found.data, known_tools(settings))
    serious = [problem for problem in errors(wrong) if not is_of_workers(problem)]
    if plan is None or serious:
        raise PlanRefused(wrong, found)
    if wrong:
        remarks = [problem.model_copy(update={"severity": "warning"}) for problem in wrong]
        output.show_problems(remarks, found.name)
    store = Known.of(settings, workspace).store(user=user)
    version, changed = store.save(new_name(name), found.text, description)
    path = store.read(name, version).path
    if as_json:
        output.show_json({"name": name, "hash": version, "where": store.where, "path": path, "changed": changed})
    else:
        said = "Saved" if changed else "Nothing has changed:"
        output.show(f"{said} {name}@{version[:SHORT]}, {path}")


@app.command("list")
def list_(workspace: Project = None, as_json: AsJson = False) -> None:
    """List templates: the project's and your own."""
    found = Known.of(environment.settings(), workspace).every()
    if as_json:
        output.show_json([each.model_dump(mode="json", exclude_none=True) for each in found])
    elif found:
        output.out().print(views.table(found))
    else:
        output.say("No templates yet. Save one: plan template save NAME FILE")


@app.command()
def show(name: Name, workspace: Project = None, as_json: AsJson = False) -> None:
    """Show a template: its inputs, its versions and its content."""
    known = Known.of(environment.settings(), workspace)
    found = known.find(name)
    versions = known.versions(found)
    plan = check(found.data, known_tools(environment.settings()))[0]
    waives = waived(plan) if plan else []
    if as_json:
        output.show_json(views.as_json(found, versions, waives))
    else:
        output.page(views.shown(found, versions, waives))


@app.command()
def diff(
    name: Name,
    other: Annotated[
        str | None,
        typer.Argument(metavar="NAME[@HASH]|FILE", help="Default: the version before.", autocompletion=names),
    ] = None,
    workspace: Project = None,
    as_json: AsJson = False,
) -> None:
    """Compare versions, templates, or one with a plan file."""
    known = Known.of(environment.settings(), workspace)
    first, second = views.sides(known, name, other)
    rows = text_rows(first, second)
    if as_json:
        output.show_json({"from": first.label, "to": second.label, "diff": rows})
    else:
        output.page("\n".join(line(row) for row in rows)) if rows else output.say("They have the same content.")


@app.command()
@with_more("run")
def run(
    name: Name,
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", metavar="DIR", help="Directory the tools work in, with the project's templates."),
    ] = None,
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
    """Start a template and follow it to its end. It counts like a plan file that you start."""
    limit = seconds_of(timeout, "--timeout")
    flags = Flags(
        workspace, yes, max_parallel, review, tuple(inputs or ()), plan_id, {}, priority, fairness, timeout=limit,
        choices=choices_of(more),
    )  # fmt: skip
    request = prepare_template(name, flags, environment.settings())
    foretell(request, as_json) if dry_run else to_its_end(request, as_json)


@app.command()
def delete(
    name: Name,
    user: User = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    workspace: Project = None,
    as_json: AsJson = False,
) -> None:
    """Delete a template with all its versions, or one version of it."""
    wanted = named(name)
    store = Known.of(environment.settings(), workspace).store(user=user)
    if wanted.hash or store.index(wanted.name) is None:
        wanted = wanted._replace(hash=find_in([store], wanted).hash)
    version = wanted.hash
    what = f"{wanted.name}@{version[:SHORT]}" if version else f"{wanted.name}, with all its versions"
    if not yes:
        if not sys.stdin.isatty():
            raise PlanError(f"this deletes {what}; pass --yes", "BAD_USAGE")
        typer.confirm(f"Delete {what}?", abort=True)
    store.delete(wanted.name, version)
    if as_json:
        output.show_json({"name": wanted.name, "hash": version or None, "deleted": True})
    else:
        output.show(f"Deleted {what}")

"""`plan import`: a plan file made of a workflow document in a foreign format. Needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from plansurvive.apps.importers.common.plan_text import data_of, row, text_of
from plansurvive.apps.importers.common.report import Imported, Report
from plansurvive.apps.importers.github_actions import workflow as github
from plansurvive.apps.importers.serverless import workflow as serverless
from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.options import AsJson, check_out
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import PlanFile, check, kind_of_others, load
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Problem
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.plan_files.lines import lines_of

LOSSES = 1
"""Exit code of --strict if something was not carried over."""

Source = Annotated[str, typer.Argument(metavar="FILE", help="The document, YAML or JSON; - reads standard input.")]
Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file.")]
Format = Annotated[
    Literal["github", "serverless"] | None, typer.Option("--from", help="Its format; default: found out.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything was not imported.")]


def import_(
    file: Source, out: Out = None, kind: Format = None, strict: Strict = False, as_json: AsJson = False
) -> None:
    """Make a plan of another system's workflow file. What it could not carry over is reported.

    Reads GitHub Actions workflows and Serverless Workflow 1.0 documents.
    """
    check_out(out, yes=False)
    try:
        found = load(file)
    except InvalidPlan:
        if what := kind_of_others(file):
            raise _unknown(f"{file} is {what}, not a workflow in YAML or JSON") from None
        raise
    result = imported(found, kind)
    plan = data_of(result)
    problems = check(plan, known_tools(environment.settings()))[1]
    text = text_of(result, found.name)
    if out:
        Path(out).write_text(text, encoding="utf-8")
    if as_json:
        report = [entry.model_dump(mode="json", exclude_none=True) for entry in result.report.entries]
        shown = {"format": result.kind, "plan": plan, "losses": result.report.losses, "report": report, "file": out}
        output.show_json({**shown, "problems": output.problem_rows(problems)})
    else:
        _show(result.report, problems, text, found.name, out)
    if strict and result.report.losses:
        raise typer.Exit(LOSSES)


def _show(report: Report, problems: list[Problem], text: str, source: str, out: str | None) -> None:
    if out:
        output.show(f"Wrote {out}; check it with: plan check {out}")
    else:
        output.show(text.rstrip("\n"))
    rows = Text()
    for entry in report.entries:
        rows.append(f"{entry.kind:4}  ", "yellow" if entry.kind == "loss" else "dim").append(f"{row(entry)}\n")
    if report.left_out:
        rows.append(f"and {report.left_out} more losses\n")
    notes = sum(entry.kind == "note" for entry in report.entries)
    rows.append(f"{report.losses} not imported, {number_of(notes, 'note')}", "bold")
    output.err().print(rows)
    if problems:
        output.show_problems(problems, f"The plan made of {source}")


Kind = Literal["github", "serverless"]


BY_HAND = "`plan init` makes a first plan to write from, and `plan make` has the LLM write one"
"""What to do about a document that cannot be imported."""


class ImportRefused(PlanError):
    """A document that cannot be imported at all. Codes: UNKNOWN_FORMAT, NOTHING_CARRIED."""

    code = "NOTHING_CARRIED"


def _unknown(what: str) -> ImportRefused:
    known = "GitHub Actions workflows (jobs) and Serverless Workflows (document, do) can be imported, and nothing else"
    return ImportRefused(f"{what}; {known}; {BY_HAND}", "UNKNOWN_FORMAT")


def imported(file: PlanFile, kind: Kind | None = None) -> Imported:
    """The plan made of a document. `kind` None: found out. Raises ImportRefused."""
    chosen = kind or kind_of(file.data)
    if chosen is None:
        is_action = isinstance(file.data, dict) and "runs" in file.data
        what = "a GitHub action (runs), not a workflow" if is_action else "not a workflow that can be read"
        raise _unknown(f"{file.name} is {what}")
    if not isinstance(file.data, dict):
        raise ImportRefused(f"{file.name} is not an object, and so no workflow; {BY_HAND}", "UNKNOWN_FORMAT")
    report = Report(lines_of(file.text))
    make = github.plan_of if chosen == "github" else serverless.plan_of
    plan = make(file.data, file.title, report)
    if not plan.get("steps"):
        raise ImportRefused(f"nothing in {file.name} can be carried over")
    return Imported(chosen, plan, report)


def kind_of(data: Any) -> Kind | None:
    """What a document is, by the fields that its format requires."""
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("jobs"), dict):
        return "github"
    return "serverless" if isinstance(data.get("do"), list) and "document" in data else None

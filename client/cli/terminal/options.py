"""Arguments and options shared by several commands, so that their names and help are the same everywhere."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.client.cli.terminal import output
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.errors import PlanError


def complete_plan(incomplete: str) -> list[str]:
    from plansurvive.client.cli.terminal.completion import plan_ids  # only where a shell completes

    return plan_ids(incomplete)


def complete_step(ctx: typer.Context, incomplete: str) -> list[str]:
    from plansurvive.client.cli.terminal.completion import step_ids

    plan = ctx.params.get("plan")
    return step_ids(plan, incomplete) if isinstance(plan, str) else []


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="Plan file, JSON or YAML; - reads standard input.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Plan id or workflow id.", autocompletion=complete_plan)]
Step = Annotated[
    str,
    typer.Argument(metavar="STEP", help="Id of the step; of an item: 'resize[cat.png]'.", autocompletion=complete_step),
]
OfStep = Annotated[
    str | None, typer.Argument(metavar="STEP", help="Id of the step; default: all steps.", autocompletion=complete_step)
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Your name, for the plan's log; default: your user name.")
]
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Reason, for the plan's log.")]


def whole_digest(text: str | None) -> str | None:
    """The digest that was given. Raises PlanError if it cannot be one."""
    if text is None or re.fullmatch(r"[0-9a-f]{64}", text):
        return text
    has = f"'{text[:80]}' has {len(text)}" if re.fullmatch(r"[0-9a-f]+", text) else f"this is '{text[:80]}'"
    where = "copy it from `plan pending ID STEP --json`"
    raise PlanError(f"--digest: a digest has 64 digits, 0-9 and a-f, and {has}; {where}", "BAD_USAGE")


Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="HEX",
        callback=whole_digest,
        help="Fail unless it is this call; `plan pending --json` shows digests.",
    ),
]
Version = Annotated[int | None, typer.Option("--version", metavar="N", help="Fail if the plan is at another version.")]


def check_out(out: str | None, yes: bool) -> None:
    """Raise PlanError if --out is combined with --yes, is a directory, is there already or cannot be written."""
    if out and (yes or Path(out).is_dir()):
        raise PlanError("--out needs the name of a file and cannot be combined with --yes", "BAD_USAGE")
    if out and Path(out).is_file():  # it may have been edited since it was written
        raise PlanError(f"--out: {out} exists already; choose another file, or remove it first", "BAD_USAGE")
    if out and not os.access(Path(out).absolute().parent, os.W_OK):
        raise PlanError(f"--out: {out} cannot be written; create its directory or choose another file", "BAD_USAGE")


def group(help: str) -> typer.Typer:
    """A command with commands of its own, which shows its help without one."""
    app = typer.Typer(
        help=help,
        add_completion=False,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            output.show(context.get_help())

    return app


def json_object(text: str, option: str) -> dict[str, Any]:
    """The JSON object that an option gives. Raises PlanError (INVALID_ARGS)."""
    try:
        found = json.loads(text)
    except ValueError as error:
        pair = re.fullmatch(r"([A-Za-z_]\w*)=(.*)", text, re.DOTALL)
        meant = f"; write '{json.dumps({pair[1]: pair[2]}, ensure_ascii=False)[:200]}'" if pair else ""
        raise PlanError(f"{option} is not valid JSON: {json_problem(error)}{meant}", "INVALID_ARGS") from error
    if not isinstance(found, dict):
        raise PlanError(f'{option} is not a JSON object; write {{"name": value}}', "INVALID_ARGS")
    return found


Refresh = Annotated[bool, typer.Option("--refresh", help="Ask all servers of mcp.toml again, also those asked lately.")]

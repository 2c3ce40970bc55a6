"""`plan call`: one call of a tool, as a plan of one step.

It is a plan like any other: recorded, approved, undone and continued after a kill. Only what it prints differs: the
value alone, so that it can be piped; everything else goes to standard error, unless a board on the terminal shows it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.client.cli.follow.ctrl_c import unless_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.run import (
    DryRun,
    NewId,
    Timeout,
    Workspace,
    foretell,
    request_of,
    started_as_json,
    started_from,
)
from plansurvive.client.cli.terminal import output
from plansurvive.client.cli.terminal.failures import ENDED_OTHERWISE
from plansurvive.client.cli.terminal.options import AsJson, json_object
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.spans import seconds_of
from plansurvive.client.plan_file import STDIN, PlanFile
from plansurvive.client.requests.plan_request import Flags, Request
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.plans.errors import ToolError
from plansurvive.plans.views.models import ResultView
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore

STEP = "call"
"""Id of the plan's only step, and the beginning of the plan's own id."""

Tool = Annotated[str, typer.Argument(metavar="TOOL", help="Name of a tool; `plan tools` lists them.")]
Args = Annotated[
    str, typer.Option("--args", metavar="JSON", help="Arguments, a JSON object; - reads it from standard input.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Approve the call in advance.")]


def call(
    tool: Tool,
    args: Args = "{}",
    workspace: Workspace = None,
    yes: Yes = False,
    plan_id: NewId = None,
    timeout: Timeout = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Call a tool once, as a plan of one step. Standard output gets the value and nothing else."""
    limit = seconds_of(timeout, "--timeout")
    arguments = json_object(sys.stdin.read() if args == STDIN else args, "--args")
    data = {"title": f"{STEP} {tool}", "steps": [{"id": STEP, "tool": tool, "args": arguments}]}
    found = PlanFile(f"<{STEP} {tool}>", "", data, base=Path.cwd())
    flags = Flags(workspace, yes, None, review=False, inputs=(), id=plan_id, timeout=limit)
    request = request_of(found, flags)
    if dry_run:
        foretell(request, as_json)
        return
    begun: list[Started] = []
    raise typer.Exit(exit_code(unless_ctrl_c(lambda here: _to_its_end(here, request, begun, as_json), begun)))


async def _to_its_end(here: Connected, request: Request, begun: list[Started], as_json: bool) -> Summary:
    started = await started_from(here, request)
    begun.append(started)
    if as_json:
        summary = await runs.wait(here.client, started.plan_id)
        result = await _result(here, started.plan_id)
        value = await _value(here, result) if result is not None and result.ok else None
        about = started_as_json(started, here.link(started.workflow_id))
        output.show_json(about | {"summary": summary.to_json(), "value": value})
        return summary
    output.say(f"plan {started.plan_id}")
    summary = await follow(here, started.plan_id, as_json=False, rows=output.say)
    result = await _result(here, started.plan_id)
    if result is not None and result.ok and summary.is_completed:
        _show(await _value(here, result))
    else:
        show_summary(summary, output.err())
    return summary


async def _result(here: Connected, plan: str) -> ResultView | None:
    return (await runs.show(here.client, plan)).steps[0].result


async def _value(here: Connected, result: ResultView) -> Any:
    """The whole value of a result, also one that is stored outside of history.

    If it cannot be read here, says so and exits as for a plan that ended otherwise: nothing less is printed instead.
    """
    if result.large is None:
        return result.value
    try:
        return await ValueStore(storage(here.settings)).get(result.large)
    except ToolError as error:
        output.show_error(error, as_json=False)
        raise typer.Exit(ENDED_OTHERWISE) from None


def _show(value: Any) -> None:
    """A text as it is, escaped on a terminal; anything else as JSON."""
    if not isinstance(value, str):
        output.show_json(value)
    elif sys.stdout.isatty():
        output.show(value)
    else:
        sys.stdout.write(value)
        sys.stdout.flush()

"""Commands that need no server: check, schema, tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.client.cli.terminal.options import AsJson, File, Refresh
from plansurvive.client.feature import content_of, hints_of, problems_of, refresh_tools
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import PlanFile, check, load, plan_schema
from plansurvive.client.requests.workspaces import asking_in, directory_of, out_of_reach, own_workspace_problems
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.definition.checks.will_ask import Asking
from plansurvive.plans.definition.foreign_names import no_tool
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Plan, Problem, ToolSpec
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.home_paths import home_path

INVALID = 2
"""Exit code for invalid input."""
MAX_ASKING = 20
"""Steps that will ask and are named; `--json` names all."""


def check_file(file: File, as_json: AsJson = False) -> None:
    """Report every problem of a plan file. Needs no server."""
    settings = environment.settings()
    try:
        found = load(file)
    except InvalidPlan as error:
        _report(file, None, None, error.problems, as_json)
        raise typer.Exit(INVALID) from None
    signals.run(refresh_tools(settings, found.data))
    tools = known_tools(settings)
    plan, wrong = check(found.data, tools)
    if plan is not None:
        wrong += problems_of(plan, settings) + hints_of(plan, tools)
    if plan is not None and plan.workspace is not None:
        wrong += own_workspace_problems(found, plan.workspace, settings)
    if plan is not None:
        directory = directory_of(found, plan, None, settings)
        wrong += content_of(plan, tools, directory, settings.state_dir)[0]
        wrong += out_of_reach(plan, tools, directory)
    asking: list[Asking] = []
    if plan is not None and not errors(wrong):  # in the plan's own workspace, or the one that `plan run` would take
        own = found.directory / home_path(plan.workspace) if plan.workspace is not None else None
        asking = asking_in(plan, own or settings.workspace or Path.cwd(), tools, settings)
    _report(file, found, plan, wrong, as_json, asking)
    if errors(wrong):
        raise typer.Exit(INVALID)


def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of plan files, for editors."""
    del as_json  # the output is always JSON
    output.show_json(plan_schema())


def tools(
    name: str | None = typer.Argument(None, metavar="NAME", help="Show this tool and its arguments."),
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """List the tools that steps may call. With a name: that tool's arguments."""
    settings = environment.settings()
    troubles = signals.run(refresh_tools(settings, everything=refresh))
    known = known_tools(settings)
    if name is not None and name not in known:
        raise PlanError(no_tool(name, known), "UNKNOWN_TOOL")
    if as_json:
        chosen: Any = known[name] if name else None
        specs = [chosen] if chosen else list(known.values())
        data = [spec.model_dump(mode="json") for spec in specs]
        output.show_json(data[0] if name else data)
    elif name:
        _show_tool(known[name])
    else:
        _list_tools(list(known.values()), troubles)


def show_asking(asking: Sequence[Asking]) -> None:
    """Print which steps will ask a person, and why; nothing if none will."""
    for first, head in ((True, "Will ask"), (False, "Will ask in later runs")):
        rows = [each for each in asking if each.first_run is first]
        if rows:
            listed = [f"  {line(each.step_id)}: {line(each.reason)}" for each in rows[:MAX_ASKING]]
            listed += [f"  ... and {len(rows) - MAX_ASKING} more steps"] if len(rows) > MAX_ASKING else []
            output.show("\n".join([f"{head} ({len(rows)})", *listed]))


def _report(
    file: str,
    found: PlanFile | None,
    plan: Plan | None,
    wrong: list[Problem],
    as_json: bool,
    asking: Sequence[Asking] = (),
) -> None:
    steps = len(plan.steps) if plan else 0
    inside = sum(1 for _ in walk(plan)) - len(plan.steps) if plan else None
    lines = [found.line(problem) if found else None for problem in wrong]
    if as_json:
        rows = output.problem_rows(wrong, lines)
        asks = [each.model_dump(mode="json") for each in asking]
        counts = {"steps": steps if plan else None, "inside": inside}
        output.show_json({"file": file, "valid": not errors(wrong), **counts, "problems": rows, "asks": asks})
        return
    if wrong:
        output.show_problems(wrong, file, lines)
    if not errors(wrong):
        more = f" and {inside} inside them or in `finally`" if inside else ""
        output.show(f"{line(file)}: {number_of(steps, 'step')}{more}, ready to run")
        show_asking(asking)


def _list_tools(specs: list[ToolSpec], troubles: Sequence[str]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for spec in specs:
        approval = Text("needs approval" if spec.approval == "always" else "", style="yellow")
        table.add_row(Text(spec.name, style="bold"), approval, Text(line(spec.description.splitlines()[0])))
    output.out().print(table)
    for trouble in troubles:
        output.say(line(trouble))
    output.say("Arguments of one tool: plan tools NAME")


def _show_tool(spec: ToolSpec) -> None:
    required = spec.args_schema.get("required", [])
    said = [f"  {line(each)}" for each in spec.description.splitlines()]
    rows = [spec.name, *([f"  Its server '{spec.server}' says:"] if spec.server else []), *said, "", "Arguments"]
    for name, schema in spec.args_schema.get("properties", {}).items():
        kind = schema.get("type") or " or ".join(str(each.get("type", "value")) for each in schema.get("anyOf", []))
        kind = " or ".join(map(str, kind)) if isinstance(kind, list) else kind
        default = "" if name in required else f", default {output.compact(schema.get('default'))}"
        default = ", optional" if spec.server and default and "default" not in schema else default
        rows.append(f"  {line(name)} ({kind or 'any'}{line(default)})")
        rows += [f"      {line(schema['description'])}"] if schema.get("description") else []
    rows += ["", f"Value\n  {line(spec.value)}"] if spec.value else []
    rows += ["", f"Approval: {_approval(spec)}", f"Time limit: {seconds(spec.timeout)}"]
    output.show("\n".join(rows))


def _approval(spec: ToolSpec) -> str:
    if spec.approval == "never":
        return "not needed, unless the step requires it"
    if spec.asks_because:
        return f"needed: {line(spec.asks_because)}"
    exempt = [f"{name} {' or '.join(map(str, values))}" for name, values in spec.approval_exempt.items()]
    return "needed" + (f", except with {' and '.join(exempt)}" if exempt else "")

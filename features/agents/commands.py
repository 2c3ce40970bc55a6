"""`plan agent`: an LLM with tools works through a request. `plan history`: past agent runs and how each ended."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.alias_generators import to_camel
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.follow.ctrl_c import unless_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.run import Workspace, Yes
from plansurvive.client.cli.terminal import environment, output, session, signals
from plansurvive.client.cli.terminal.options import AsJson, check_out
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.ids import plan_id
from plansurvive.client.requests.llm import require_llm
from plansurvive.client.requests.workspaces import named
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.features.agents import verbs
from plansurvive.features.agents.history_file import history_text
from plansurvive.features.agents.history_store import AgentHistory, history_store
from plansurvive.features.agents.model import history as history_of
from plansurvive.features.agents.model.history import PLAN_TYPE, Entry, History, Status
from plansurvive.features.agents.model.order import AgentOrder, step_args
from plansurvive.features.planning.make import MakeRequest, Out, follow_making
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.definition.schema_keywords import no_keywords
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import Options
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.views.models import AgentView
from plansurvive.plans.views.models.agents import AgentLimits
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.connect import find

Request = Annotated[str, typer.Argument(metavar="REQUEST", help="The goal, in your own words.")]
Tools = Annotated[str | None, typer.Option("--tools", metavar="A,B", help="Limit the agent to these tools.")]
Calls = Annotated[
    int | None, typer.Option("--max-calls", metavar="N", min=1, help="Limit on LLM requests; default 50.")
]
Tokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Limit on tokens; default 1,000,000.")
]
Seconds = Annotated[
    float | None, typer.Option("--max-seconds", metavar="S", min=1, help="Limit on time; default 3600.")
]
Schema = Annotated[Path | None, typer.Option("--schema", metavar="FILE", help="JSON Schema for the final answer.")]
NewId = Annotated[str | None, typer.Option("--id", metavar="ID", help="Id of the agent; cannot be reused.")]
AsPlan = Annotated[
    bool, typer.Option("--as-plan", help="Only split it into tasks: a plan in review, with one agent per task.")
]
Detach = Annotated[bool, typer.Option("--start", help="Start it and return; it runs in the background.")]


def agent(
    request: Request, workspace: Workspace = None, yes: Yes = False, tools: Tools = None, max_calls: Calls = None,
    max_tokens: Tokens = None, max_seconds: Seconds = None, schema: Schema = None, agent_id: NewId = None,
    detach: Detach = False, as_plan: AsPlan = False, out: Out = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Have an LLM with tools work through a request. It works task by task; the command follows it to the end."""
    given = {"iterations": max_calls, "tokens": max_tokens, "seconds": max_seconds}
    order = AgentOrder(
        request=_checked(request),
        tools=[name.strip() for name in tools.split(",") if name.strip()] if tools else None,
        limits=AgentLimits.model_validate({name: value for name, value in given.items() if value is not None}),
        output_schema=_schema(schema),
    )
    if as_plan:
        _require_no_start(detach)
        check_out(out, yes)
        follow_making(MakeRequest(order.request, workspace, yes, out, None, {}, agent_id, as_json, step_args(order)))
    if out:
        raise PlanError("--out writes the plan that --as-plan makes; use it with --as-plan", "BAD_USAGE")
    _run(order, workspace, yes, agent_id, detach, as_json)


def _run(
    order: AgentOrder, workspace: str | None, yes: bool, agent_id: str | None, detach: bool, as_json: bool
) -> None:
    begun: list[Started] = []

    async def go(here: Connected) -> Summary | None:
        require_llm(here.settings, own_worker=here.keeps_worker)
        local = here.connection.is_on_this_machine
        options = Options(workspace=named(workspace, here.settings, local=local), approve_all=yes, by=author())
        started = await verbs.start_agent(
            here.client, order, options=options, agent_id=agent_id, queue=here.settings.task_queue
        )
        begun.append(started)
        return await _follow(here, started, detach, as_json)

    summary = unless_ctrl_c(go, begun)
    if summary is not None:
        raise typer.Exit(exit_code(summary))


def _require_no_start(detach: bool) -> None:
    if detach:
        raise PlanError("--as-plan makes a plan that stays in review; leave out --start", "BAD_USAGE")


def history(
    plan: Annotated[str | None, typer.Option("--plan", metavar="NN", help="Only runs of this plan.")] = None,
    active: Annotated[bool, typer.Option("--active", help="Only the runs in progress.")] = False,
    interrupted: Annotated[bool, typer.Option("--interrupted", help="Only the run that can be resumed.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write the history to this directory.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild it from the Temporal server.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the agent runs on this machine. Lists task, status, times and what each run resumes."""
    store = history_store(environment.settings())
    if rebuild:
        found = session.run(lambda here: verbs.recorded(here.client), worker=False)
        found = [entry for entry in found if entry.agent_type != PLAN_TYPE]
        store.replace(found)
        output.say(f"Rebuilt the history from {len(found)} agent runs.")
    kept = _read(store)
    entries = _chosen(kept, plan, active, interrupted)
    if export is not None:
        export.mkdir(parents=True, exist_ok=True)
        exported = History(max_entries=kept.max_entries, entries=entries)
        write_whole(export / "agent-history.json", history_text(exported).encode())
        output.say(f"Wrote {number_of(len(entries), 'run')} to {export / 'agent-history.json'}")
    elif as_json:
        rows = [entry.model_dump(mode="json", exclude_none=True) for entry in entries]
        output.show_json([{to_camel(name): value for name, value in row.items()} for row in rows])
    elif entries:
        output.out().print(_table(entries))
    elif active or interrupted or plan is not None:
        output.say("No such runs; `plan history` lists all.")
    else:
        output.say("No agent runs to show. Start one: plan agent REQUEST")


def _read(store: AgentHistory) -> History:
    """The history, after asking the server about the runs that it has in progress: they may have been terminated."""
    read = store.read()
    if read.warning:
        output.say(read.warning)
    running = history_of.active(read.history)
    if not running:
        return read.history
    try:
        ends = signals.run(_ends(running))
        return store.settle(ends).history if ends else read.history
    except PlanError as error:
        output.say(f"Runs in progress may have ended since: {error.message}")
        return read.history


async def _ends(running: list[Entry]) -> list[tuple[str, Status, datetime]]:
    """Ends that the server knows of. It is not started for that."""
    connection = await find(environment.settings())
    return await verbs.ends(connection.client, running) if connection else []


async def _follow(here: Connected, started: Started, detach: bool, as_json: bool) -> Summary | None:
    link = here.link(started.workflow_id)
    ids = {"agentId": started.plan_id, "workflowId": started.workflow_id, "runId": started.run_id, "ui": link}
    if detach:
        output.show_json(ids) if as_json else output.show(f"agent {started.plan_id}" + (f"\n{link}" if link else ""))
        return None
    if as_json:
        summary = await runs.wait(here.client, started.plan_id)
        found = (await runs.show(here.client, started.plan_id)).to_json().get("agent", {})
        output.show_json(ids | {"summary": summary.to_json(), "agent": found})
        return summary
    output.show(f"agent {started.plan_id}" + (f"\n{link}" if link else ""))
    summary = await follow(here, started.plan_id, as_json=False)
    _show_end((await runs.show(here.client, started.plan_id)).agent or AgentView(), summary)
    return summary


def _show_end(found: AgentView, summary: Summary) -> None:
    for task in found.tasks:
        mark = "✓" if task.status == "done" else " "
        output.show(f"  {mark} {line(task.objective)}")
    show_summary(summary)
    if found.answer:
        output.show(f"\n{safe(found.answer)}")


def _chosen(history: History, plan: str | None, active: bool, interrupted: bool) -> list[Entry]:
    if active:
        return history_of.active(history)
    if interrupted:
        one = history_of.resumable(history)
        return [one] if one else []
    return list(history.entries) if plan is None else history_of.of_plan(history, plan_id(plan))


def _table(entries: list[Entry]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("AGENT", "STATUS", "STARTED", "ENDED", "RESUMES"):
        table.add_column(name, no_wrap=True)
    table.add_column("TASK", no_wrap=True, overflow="ellipsis")
    for entry in entries:
        end = entry.completion_timestamp or "-"
        row = (entry.agent_id, entry.status, entry.timestamp, end, entry.resumes or "-", entry.task_description)
        table.add_row(*(Text(line(text)) for text in row))
    return table


def _checked(request: str) -> str:
    if not request.strip():
        raise PlanError("the request is empty; describe the goal", "BAD_USAGE")
    if len(request) > 20_000:
        raise PlanError(
            "the request is longer than 20,000 characters; put the details in a file in the workspace", "BAD_USAGE"
        )
    return request


def _schema(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlanError(f"--schema {path}: {error}", "BAD_USAGE") from error
    if not isinstance(found, dict):
        raise PlanError(f"--schema {path}: a JSON Schema must be an object", "BAD_USAGE")
    if problem := schema_problem(found) or no_keywords(found):
        raise PlanError(f"--schema {path}: {problem}", "BAD_USAGE")
    return found

"""Commands that show plans: show, watch, summary, graph, pending."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from plansurvive.client.children.naming import run_of
from plansurvive.client.cli.follow.ctrl_c import after_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.items.inside import inside_json, inside_text
from plansurvive.client.cli.items.waiting import pending_rows
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.asking import compared
from plansurvive.client.cli.terminal.options import AsJson, By, Id, complete_plan, complete_step
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.feature import views_of_features
from plansurvive.client.ids import plan_id
from plansurvive.client.large_values import with_large_values
from plansurvive.client.live.steps import in_words
from plansurvive.client.plan_file import load
from plansurvive.client.rpc import describe
from plansurvive.client.undos import Undo, undo_of
from plansurvive.client.unserved import unserved
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.calls import with_values
from plansurvive.client.verbs.runs import Pending, Summary
from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.flow.ids import covers
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.model import Plan
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.text.spans import left
from plansurvive.plans.views.graphs.plan_nodes import plan_nodes
from plansurvive.plans.views.markdown import Node, dot, mermaid
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.queries import TEXT_STEPS
from plansurvive.plans.views.summary import summary_markdown

_UNDRAWN = ("UNKNOWN_DEPENDENCY", "BAD_REFERENCE", "PLAN_CYCLE", "PLAN_DUPLICATE_ID")
"""Problems that a graph would not show."""


def show(
    plan: Id,
    step: Annotated[
        str | None,
        typer.Argument(
            metavar="STEP",
            help="Only this step and what is inside it: a loop, 'a[x]', 'a[*].b', 'plan/step'.",
            autocompletion=complete_step,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All steps of a big plan; with --json, large values in full.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="With STEP: every step inside it.")] = False,
    numbered: Annotated[
        bool,
        typer.Option("--numbered", help="Steps by number, as in step_files and step_tool_history, without ids."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a plan: its steps, results and files. Blocks and loops are folded; name one to unfold it."""
    if numbered and (step is not None or as_json):
        raise typer.BadParameter("--numbered is for a whole plan as text", param_hint="--numbered")
    if step is not None:
        _show_inside(plan, step, everything=everything, as_json=as_json)
        return

    if as_json:
        output.show_json(session.look(plan, "plan", lambda here: _json_view(here, plan, full)))
    elif numbered:
        limit = None if full else TEXT_STEPS
        output.show(session.look(plan, "text", lambda here: runs.text(here.client, plan, limit)))
    else:
        output.show_rows(session.look(plan, "plan" if full else "text", lambda here: _linked_text(here, plan, full)))


async def _linked_text(here: Connected, plan: str, full: bool) -> str:
    text = runs.text(here.client, plan, None if full else TEXT_STEPS, detailed=True)
    found, linked, live, so_far = await asyncio.gather(
        text, runs.links(here.client, plan), runs.live(here.client, plan), runs.summary(here.client, plan)
    )
    now = datetime.now(UTC)
    rows = [f"Now: {line(name or 'LLM request')}: {line(in_words(each, now))}" for name, each in live.items()]
    rows += [f"Deadline: {left(so_far.deadline, now)}"] if so_far.deadline else []
    if so_far.status is PlanStatus.DRAFT:  # it may be one that no worker checks
        run = await run_of(here.client, plan)
        queue = (await describe(here.client, plan)).task_queue
        rows += [f"Waiting: {each}" for each in await unserved(here.client, run.plan, queue)]
    undo = await undo_of(here.client, plan, so_far.ended_at)
    rows += [f"Undone: {line(undo.sentence())}"] if undo else []
    rows += [f"Resumes: {linked.resumes}"] if linked.resumes else []
    rows += [f"Resumed by: {', '.join(linked.resumed_by)}"] if linked.resumed_by else []
    later = next(reversed(linked.resumed_by), "")
    for command, what in next_actions(so_far, resumed_by=later, undone=undo is not None, views=views_of_features()):
        rows += [row.rstrip() for row in output.wrapped(f"Next: {command}  ", what)]
    return "\n".join([found, *([""] if rows else []), *rows])


async def _json_view(here: Connected, plan: str, full: bool) -> dict[str, Any]:
    found = await runs.show(here.client, plan)
    later = (await runs.links(here.client, plan)).resumed_by
    live = await runs.live(here.client, plan)
    running = {name: each.model_dump(mode="json", exclude_unset=True) for name, each in live.items()}
    shown = await with_large_values(found, here.settings) if full else found
    asked = [item.model_copy(update={"unusual": item.warnings}) for item in shown.pending]
    items = [item.model_dump(mode="json", exclude_unset=True) for item in asked]
    undo = await undo_of(here.client, plan, found.ended_at)
    more = {"resumedBy": later, "live": running, "undo": undo.model_dump(mode="json") if undo else None}
    return shown.to_json() | {"pending": items} | {name: each for name, each in more.items() if each}


def _show_inside(plan: str, step: str, *, everything: bool, as_json: bool) -> None:
    if as_json:
        found = session.look(plan, "inside", lambda here: inside_json(here, plan, step, everything=everything))
        output.show_json(found)
    else:
        output.show_rows(
            session.look(plan, "inside", lambda here: inside_text(here, plan, step, everything=everything))
        )


def watch(plan: Id, as_json: AsJson = False) -> None:
    """Follow a plan to its end. Past events are shown first."""
    name = plan_id(plan)

    async def to_the_end(here: Connected) -> tuple[Summary, str]:
        return await follow(here, plan, as_json=as_json), await _later(here, plan)

    try:
        summary, resumed_by = session.look(plan, "plan", to_the_end)
    except KeyboardInterrupt:
        raise typer.Exit(after_ctrl_c(name)) from None
    if not as_json:
        show_summary(summary, resumed_by=resumed_by)
    raise typer.Exit(exit_code(summary))


def summary(
    plan: Id,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as in SUMMARY.md.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how a plan ended, or its current state."""
    found, undo, resumed_by = session.look(plan, "summary", lambda here: _ended(here, plan))
    if as_json:
        output.show_json(found.to_json() | ({"undo": undo.model_dump(mode="json")} if undo else {}))
    elif markdown:
        output.show(summary_markdown(found))
    else:
        show_summary(found, undo=undo, resumed_by=resumed_by)


async def _ended(here: Connected, plan: str) -> tuple[Summary, Undo | None, str]:
    found = await runs.summary(here.client, plan)
    return found, await undo_of(here.client, plan, found.ended_at), await _later(here, plan)


async def _later(here: Connected, plan: str) -> str:
    """The latest run that resumed the plan; empty if none has."""
    return next(reversed((await runs.links(here.client, plan)).resumed_by), "")


def graph(
    plan: Annotated[str, typer.Argument(metavar="FILE|ID", help="Plan file, plan id or workflow id.")],
    as_dot: Annotated[bool, typer.Option("--dot", help="Print Graphviz DOT instead of Mermaid.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a plan as a graph, in Mermaid. For a started plan, nodes show the status of each step."""
    if plan == "-" or Path(plan).is_file() or Path(plan).suffix.lower() in (".json", ".yaml", ".yml"):
        read = read_plan(load(plan).data)
        if isinstance(read, list):
            raise InvalidPlan(read)
        nodes = _graph_nodes(read)
    else:
        view = session.look(plan, "plan", lambda here: runs.show(here.client, plan))
        nodes = [Node.of(step) for step in view.steps]
    text = dot(nodes) if as_dot else mermaid(nodes)
    if as_json:
        output.show_json({"format": "dot" if as_dot else "mermaid", "graph": text})
    else:
        output.show(text)


def pending(
    plan: Annotated[
        str | None, typer.Argument(metavar="ID", help="Only the decisions of this plan.", autocompletion=complete_plan)
    ] = None,
    step: Annotated[
        str | None,
        typer.Argument(metavar="STEP", help="Only the decision about this step.", autocompletion=complete_step),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With large values in full, and files in full instead of as a diff.")
    ] = False,
    to: Annotated[str | None, typer.Option("--to", metavar="NAME", help="Only the questions for this person.")] = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only what you may decide; of the rest, why not. `--by` says who you are.")
    ] = False,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """List the decisions that plans await."""
    me = author(by) if mine else ""
    others, held_up, in_review = dict[str, str](), list[str](), list[str]()

    async def collect(here: Connected) -> list[Pending]:
        found = [each async for each in runs.pending(here.client, output.say, plan=plan, to=to)]
        if plan is not None and not found:
            so_far = await runs.summary(here.client, plan)
            held_up.append(so_far.held_up)
            in_review.extend([plan] if so_far.status is PlanStatus.REVIEW else [])
        elif plan is None and to is None and not mine:
            reviewed = runs.list_plans(here.client, running=True, statuses=[PlanStatus.REVIEW])
            in_review.extend([each.plan_id async for each in reviewed])
        if plan is not None and step is not None:
            found = [each for each in found if covers(step, each.step_id)]
        if mine:
            judged = [(each, each.barred(Viewer(me))) for each in found]
            others.update({f"{each.plan_id} {each.step_id}": why for each, why in judged if why})
            found = [each for each, why in judged if not why]
        if full:
            return [await with_values(each, here.settings) for each in found]
        return found if as_json else [await compared(here, each) for each in found]

    found = session.run(collect)
    if as_json:
        output.show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        output.say(f"Nothing awaits {line(me)}." if mine else _nothing(plan, step, to))
        for each in filter(None, held_up):
            output.say(f"Plan {line(plan or '')} {line(each)}.")
    else:
        output.page(Text("\n").join(pending_rows(found, folds=step is None)))
    for name in in_review if not as_json else ():
        output.say(
            f"{line(name)} is in review: `plan review {line(name)}` shows it, `plan begin {line(name)}` starts it."
        )
    for what, why in others.items() if not as_json else ():
        output.say(f"Not for {line(me)}: {line(what)}: {line(why)}")


def _nothing(plan: str | None, step: str | None, to: str | None) -> str:
    if to is not None:
        return f"No step asks {line(to)} a question."
    if plan is not None and step is not None:
        return f"Step '{line(step)}' is not awaiting a decision; see: plan show {line(plan)}"
    return "No steps are awaiting an approval or an answer."


def _graph_nodes(plan: Plan) -> list[Node]:
    """The graph of a plan that has not started; prints the problems that the graph cannot show."""
    wrong = [problem for problem in problems(plan, {}) if problem.code in _UNDRAWN]
    if wrong:
        output.show_problems(wrong)
    return plan_nodes(plan)

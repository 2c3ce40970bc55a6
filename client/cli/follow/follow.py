"""Follows a plan to its end (a board on a terminal, else lines or JSON) and prints its summary."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial

from rich.text import Text

from plansurvive.client.cli.follow.big_plan_lines import Digest
from plansurvive.client.cli.follow.catch_up import past
from plansurvive.client.cli.follow.screen import Screen
from plansurvive.client.cli.terminal.asking import compared
from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.cli.terminal.failures import ENDED_OTHERWISE, UNANSWERED
from plansurvive.client.cli.terminal.output import broken, out, say, show, show_json
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.feature import views_of_features
from plansurvive.client.ids import plan_id
from plansurvive.client.live.marks import MARKS
from plansurvive.client.rpc import describe, has_ended
from plansurvive.client.undos import Undo
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Summary
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.undo_run import UNDOES
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.flow.ids import around, inner_id
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.records import EntryView
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.summary import Reason, UndoneStep, why_denied, why_failed

SHOWN = 10
"""How many steps of one status a summary lists."""
MARGIN = 11
"""Columns in front of the texts of a summary."""
STOP_MARGIN = 4
"""Columns in front of what continues the reason why a plan has stopped."""
_STYLE = {"completed": MARKS["completed"], "failed": MARKS["failed"]}


async def follow(here: Connected, plan: str, *, as_json: bool, rows: Callable[[str], None] = show) -> Summary:
    """Show progress until the plan has ended; returns its summary. Raises InvalidPlan if the worker rejected it.

    `rows` prints what a file or a pipe gets instead of the board. A background worker that dies is replaced.
    """
    keeper = asyncio.create_task(_keep_worker(here, on_screen=sys.stdout.isatty() and not as_json))
    try:
        if as_json:
            async for event in runs.watch(here.client, plan, say=say, live=True):
                show_json(event.to_json(), on_one_line=True)
        elif sys.stdout.isatty():
            await Screen(here, plan_id(plan), author()).follow()
        else:
            await _print_lines(here, plan, rows)
    except PlanError as error:
        # A plan that was refused at its start answers no queries: its result raises the reason.
        if error.code == "QUERY_FAILED" and await has_ended(here.client, plan):
            await runs.wait(here.client, plan)
        raise
    finally:
        keeper.cancel()
    return await runs.wait(here.client, plan)


async def _keep_worker(here: Connected, *, on_screen: bool) -> None:
    """Have a background worker as long as the plan is followed; `on_screen`: nothing is said."""
    if here.keeps_worker:
        from plansurvive.runtime.background_worker import keep_worker  # `plan list` does without

        await keep_worker(here.settings, here.connection, (lambda _: None) if on_screen else say)


def show_summary(
    summary: Summary, console: SafeConsole | None = None, *, undo: Undo | None = None, resumed_by: str = ""
) -> None:
    """Print the summary of a plan, on standard output or another console, with what was undone of it since.

    `resumed_by`: the latest run that resumed it.
    """
    sign, style = _STYLE.get(summary.status.value, ("!", "yellow")) if summary.ended_at else _sign_of_open(summary)
    done = sum(summary.counts.get(status, 0) for status in ("completed", "skipped"))
    total = summary.counts.get("total", 0)
    word = PHASES.get(summary.phase, summary.status.value) if summary.ended_at is None else summary.status.value
    head = Text.assemble((f"{sign} {word}", f"bold {style}"))
    head.append(f"   {done} of {total} steps" if total else "")
    head.append(f"   {seconds(summary.duration)}" if summary.ended_at and summary.duration else "")
    rows = list[Text]()
    rows += [Text.assemble(("  held up  ", "yellow"), f"it {line(summary.held_up)}")] if summary.held_up else []
    failed = sorted(summary.failed, key=lambda each: each.step_id not in summary.inside)  # the count, then its items
    rows += _reasons("failed", "red", [(each.step_id, why_failed(summary, each)) for each in failed], summary)
    rows += _reasons("denied", "yellow", [(each.step_id, why_denied(each)) for each in summary.denied], summary)
    rows += _reasons("unanswered", "yellow", [(each.step_id, each.reason) for each in summary.unanswered], summary)
    rows += _reasons("skipped", "dim", [(each.step_id, each.reason) for each in summary.skipped], summary)
    blocked = [(each.step_id, "" if _is_the_stop(each, summary) else each.reason) for each in summary.blocked]
    rows += _reasons("blocked", "dim", blocked, summary)
    rows += [
        Text.assemble(("  undo     ", "dim"), f"{each.step_id}: {_became(each, summary)} {line(each.error)}".rstrip())
        for each in summary.undone[:SHOWN]
    ]
    rows += [Text.assemble(("  failed   ", "red"), f"{each.step_id}: {line(each.error)}") for each in summary.closing]
    rows += [Text.assemble(("  undone   ", "yellow"), line(undo.sentence()))] if undo else []
    files = ", ".join(map(line, summary.files_written[:20]))
    more = len(summary.files_written) - 20
    rows += [Text.assemble(("  files    ", "dim"), files + (f", and {more} more" if more > 0 else ""))] if files else []
    used = summary.tokens
    rows += [Text.assemble(("  tokens   ", "dim"), used.in_words())] if used.calls else []
    for command, what in next_actions(
        summary, resumed_by=resumed_by, undone=undo is not None, views=views_of_features()
    ):
        rows += [Text.assemble(("  next     ", "dim"), command, (f"   {what}", "dim"))]
    console = console or out()
    top = broken(Text(f"  {line(summary.stopped)}"), console, STOP_MARGIN) if summary.stopped else []
    below = (each for row in rows for each in broken(row, console, MARGIN))
    console.print(Text("\n").join([*broken(head, console, MARGIN), *top, *below]), soft_wrap=True)


def _sign_of_open(summary: Summary) -> tuple[str, str]:
    """Mark and style of a plan that has not ended: whether it awaits a person."""
    is_asking = bool(summary.asks or summary.awaiting) or summary.status is PlanStatus.REVIEW
    return MARKS["waiting" if is_asking else "running" if summary.status is PlanStatus.RUNNING else "pending"]


def _is_the_stop(reason: Reason, summary: Summary) -> bool:
    """Whether a step is blocked only because the plan was refused, which the summary says in its first row."""
    return bool(reason.reason and summary.problems) and summary.stopped.startswith(reason.reason)


def _became(undone: UndoneStep, summary: Summary) -> str:
    """What became of an undo: its status, or what it awaits."""
    own = inner_id(undone.step_id, UNDO)
    asked = (each.kind for each in summary.asks if each.step_id == own or own in around(each.step_id))
    kind = next(asked, "")
    return f"awaiting {kind}" if kind else undone.status


def _reasons(status: str, style: str, steps: list[tuple[str, str]], summary: Summary) -> list[Text]:
    """The first steps of a status with their reasons, and the number of further ones."""
    rows = [
        Text.assemble((f"  {status:<7}  ", style), f"{name}: {line(why)}" if why else name)
        for name, why in steps[:SHOWN]
    ]
    more = max(len(steps), summary.counts.get(status, 0)) - SHOWN  # items of loops are in the list alone
    return rows + ([Text(f"           and {more} more", style="dim")] if more > 0 else [])


def exit_code(summary: Summary) -> int:
    """0 if every step was completed, or skipped by a reviewer or a condition; 5 if only decisions lack; else 1."""
    if summary.is_completed:
        return 0
    return UNANSWERED if summary.lacks_answers_alone else ENDED_OTHERWISE


def _begins(entry: EntryView) -> bool:
    """Whether the run's own events begin with this entry."""
    undoes = entry.kind == LogKind.CLOSING and entry.text.startswith(UNDOES)
    return undoes or entry.kind == LogKind.RESUMES


async def _print_lines(here: Connected, plan: str, rows: Callable[[str], None]) -> None:
    view = await runs.brief(here.client, plan, say)
    lines = Digest(plan_id(plan), view)
    for event in past(view) if lines.is_big else []:
        for row in lines.of(event):
            rows(row)
    # A plan that resumes or undoes another one has the events of that one.
    begun = max((entry.seq - 1 for entry in view.log if _begins(entry)), default=0)
    since = view.seq if lines.is_big else begun
    queue = (await describe(here.client, plan)).task_queue
    async for event in runs.watch(here.client, plan, since=since, say=say, live=True):
        if not lines.knows(event):
            lines.learn(await runs.brief(here.client, plan, say))
        await lines.look(event, partial(compared, here, queue=queue))
        for row in lines.of(event):
            rows(row)

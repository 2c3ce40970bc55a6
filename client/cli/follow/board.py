"""The live board: renders a plan's view within a given height. Pure: returns what to draw, draws nothing itself.

If not all steps fit, active ones take precedence: awaiting approval, running, failed, then the next to start and the
last to end; the rest is folded into one line. Rows stay in the plan's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plansurvive.client.cli.follow.next_steps import folded as broken
from plansurvive.client.live.marks import ASKING, MARKS
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.text.spans import left
from plansurvive.plans.views.models import BriefStep, BriefView, listed_steps
from plansurvive.plans.views.steps.abridged import chosen, folded
from plansurvive.plans.views.steps.counting import share_of
from plansurvive.plans.views.steps.row import Row, live_row

TASKS = {"done": ("✓", "green"), "current": ("▸", "cyan"), "open": ("·", "dim")}
"""Mark and style of each status of an agent's task."""
NAME_WIDTH = 20
NAME_SHARE = 4
"""Of a wide screen, names of steps have this part, at least NAME_WIDTH columns."""
_CLOSING = {"undo": "in the rollback", "finally": "in `finally`"}
FRAME = 5
"""Lines of the board besides the steps."""


def board(
    view: BriefView, now: datetime, height: int, footer: RenderableType | None = None, footer_lines: int = 2,
    width: int = 80,
) -> RenderableType:  # fmt: skip
    """The current state of the plan in at most `height` lines, `footer_lines` of them below the steps."""
    room = max(3, height - FRAME - more_lines(view, width) - (footer_lines + 1 if footer else 0))
    steps = view.steps
    shown = chosen(steps, room)
    name_width = max(NAME_WIDTH, width // NAME_SHARE)
    listed = _rows([steps[index] for index in shown], now, spare=room - len(steps), name_width=name_width)
    parts: list[RenderableType] = [_head(view, now), *_notices(view, width), _bar(view), listed]
    if len(shown) < len(steps):
        seen = set(shown)
        hidden = [_counted(step) for index, step in enumerate(steps) if index not in seen]
        parts.append(Text(folded(hidden), style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts, *_counts(view, width), *([Text(), footer] if footer else []))


def more_lines(view: BriefView, width: int) -> int:
    """The lines of the board beyond FRAME: what holds the plan up, and counts that need more than one."""
    return len(_notices(view, width)) + max(0, len(_counts(view, width)) - 1)


def _notices(view: BriefView, width: int) -> list[Text]:
    """What holds the plan up."""
    texts = [f"It {each.text}" for each in view.notices.values() if each.holds]
    return [Text(f" {row}", "yellow", no_wrap=True) for row in broken(texts, width - 1, "   ")]


def _counted(step: BriefStep) -> str:
    """What a row that is left out counts as; what closes the plan is none of its steps."""
    return f"{step.status} {_CLOSING[step.closes]}" if step.closes in _CLOSING else step.status


def remark(step: BriefStep, stands: Row) -> str:
    """The text at the end of a step's row: how long it takes, what it awaits, why it ended."""
    if stands.sign == "running":
        share = "" if stands.share is None else f"{stands.share}%"
        return "  ".join(filter(None, (stands.tasks, share, stands.attempt, stands.took)))
    if stands.sign == "completed":
        return stands.took
    if stands.sign == "failed":
        return stands.code or "failed"
    return stands.word if stands.sign in ("waiting", "skipped", *DENIALS.values()) or step.permanently_blocked else ""


def _head(view: BriefView, now: datetime) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    elapsed = seconds(((view.ended_at or now) - view.started_at).total_seconds()) if view.started_at else ""
    style = {"completed": "green", "failed": "red", "partial": "yellow", "cancelled": "yellow", "paused": "yellow"}
    phase = PHASES.get(view.closing.phase) if view.closing and not view.ended_at else None
    status = Text(phase or view.status, style=f"bold {'yellow' if phase else style.get(view.status, 'cyan')}")
    title = Text(line(view.title or view.id), style="bold")
    limit = f"  ends {left(view.deadline, now)}" if view.deadline else ""
    estimate = f" (estimated {seconds(view.estimated_duration)})" if view.estimated_duration is not None else ""
    grid.add_row(title, Text.assemble(status, f"  {elapsed}{estimate}{limit}"))
    return grid


def _bar(view: BriefView) -> RenderableType:
    counts = view.counts
    done = sum(counts.get(status, 0) for status in ("completed", "skipped"))
    within = sum(share_of(step.inside) for step in view.steps if step.inside and step.status == "running")
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(ProgressBar(total=counts["total"], completed=done + within), f"{done}/{counts['total']}")
    return grid


def _what(step: BriefStep, stands: Row) -> str:
    """How a child plan stands, that an agent asks, and what is at work; else what the step is for."""
    return " · ".join(
        filter(None, (stands.child, "" if step.child and stands.child and not step.live else stands.text))
    )


class _Ends(NamedTuple):
    """A text that is cut where it does not fit beside what ends the row: each row has its own room."""

    said: Text
    end: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        said = self.said.copy()
        said.truncate(max(0, options.max_width - self.end.cell_len - 1), overflow="ellipsis", pad=True)
        yield Text.assemble(said, " ", self.end, no_wrap=True, overflow="ellipsis")


def _rows(steps: Sequence[BriefStep], now: datetime, spare: int, name_width: int) -> RenderableType:
    """One row per step; below a running agent's row its task list, if there is room."""
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(width=1)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=name_width)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=14)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for step in steps:
        stands = live_row(step, now)
        sign, style = MARKS[stands.sign]
        quiet = "dim" if step.status in ("pending", "blocked", "skipped") else ""
        table.add_row(
            Text(sign, style=style),
            Text(step.id, style=quiet),
            Text(line(step.tool), style="dim"),
            _Ends(
                Text(line(stands.error or _what(step, stands)), style="red" if stands.error else quiet),
                Text(line(remark(step, stands)), style=style),
            ),
        )
        tasks = step.tasks if step.status == "running" else []
        if len(tasks) <= spare:
            spare -= len(tasks)
            for task in tasks:
                sign, style = TASKS[task.status]
                objective = (line(task.objective), "dim" if task.status == "open" else "")
                table.add_row("", "", "", Text.assemble((f"{sign} ", style), objective))
        for each in step.instances[: max(0, spare)]:
            spare -= 1
            stands = live_row(each, now)
            sign, style = MARKS[stands.sign]
            what = Text(line(stands.error or stands.text), style="red" if stands.error else "")
            name = Text.assemble((f"{sign} ", style), line(each.id.removeprefix(step.id)))
            ends = _Ends(what, Text(line(remark(each, stands)), style=style))
            table.add_row("", name, Text(line(each.tool), style="dim"), ends)
    return table


def _counts(view: BriefView, width: int) -> list[Text]:
    """The steps by status, what is awaited, and tokens, in one line or in as many as they need."""
    parts = list[Text]()
    questions = sum(item.is_question for item in view.pending)
    waits = Counter(each.awaiting for each in listed_steps(view.steps))
    waits["approval"] = len(view.pending) - questions + sum(view.more_pending.values())
    for status, number in view.resting.items():
        parts.append(Text(f"{number} {status}", MARKS[status][1]))
    waiting = {"recovery": waits["recovery"], "event": waits["event"], "answer": questions}
    for what, number in {**waiting, "approval": waits["approval"]}.items():
        if number:
            parts.append(Text(f"{number} awaiting {what}", ASKING[1]))
    used = view.tokens
    if used.calls:
        parts.append(Text(used.in_words(" tokens"), "dim"))
    rows = [Text(no_wrap=True, overflow="ellipsis")]
    for part in parts:
        if rows[-1] and rows[-1].cell_len + 3 + part.cell_len > width:
            rows.append(Text(no_wrap=True, overflow="ellipsis"))
        rows[-1].append(" · " if rows[-1] else "").append_text(part)
    return rows

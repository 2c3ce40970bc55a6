"""Renders a plan's view for the review screen: heading, one row per step, a step in full, the change log. Pure.

Every mark comes with a word, so that nothing depends on colour alone; texts of plans and tools are escaped.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from plansurvive.apps.review.around import NOTHING, Around
from plansurvive.apps.review.nested import (
    UNTOUCHED,
    below_id,
    below_text,
    inside_text,
    is_inside,
    shown_steps,
    ways_below,
)
from plansurvive.client.decide.shown import NOW, coloured
from plansurvive.client.live.marks import ASKING, MARKS
from plansurvive.client.plan_file import races_among
from plansurvive.plans.execution.tool_history import shorten
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.model.step_fields import On, aliases, names
from plansurvive.plans.proposals import Named
from plansurvive.plans.run import Status
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import exact, line, safe
from plansurvive.plans.views.models import PlanView, StepView
from plansurvive.plans.views.models.card import OR, Card
from plansurvive.plans.views.steps.row import row as stands
from plansurvive.plans.views.steps.row import shortened, verdicts
from plansurvive.plans.views.steps.words import what

UNTOUCHED_MARK = ("☐", "")
TASKS = {"done": "✓ done   ", "current": "▸ current", "open": "· open   "}
"""Mark and word for each status of an agent's task."""
HELD_ROWS = 4
"""Rows for what holds a plan up or stopped it, as many as `review.tcss` has room for below the title."""
LABEL = 12
DIFF = "diff"
"""Stands for the styles of the lines of a diff."""
WORD = string.ascii_letters + string.digits + "_-"
"""What the ids of authors consist of."""
MAX_VALUE = 20_000
"""How many characters of a result are shown; arguments are shown in full."""


def heading(view: PlanView, width: int) -> Text:
    """Title, status, version and progress on one line; and what holds the plan up or stopped it, if need be below."""
    counts = view.counts
    done = sum(counts.get(status, 0) for status in ("completed", "skipped"))
    steps = f"{done} of {counts['total']} steps done" if done else number_of(counts["total"], "step")
    waiting = len(view.pending) + sum(view.more_pending.values())
    asks = any(item.is_question for item in view.pending)
    word = PHASES[view.closing.phase] if view.closing and not view.ended_at else view.status
    begins = f"  {word}  version {view.version}  {steps}"
    begins += f"  estimated {seconds(view.estimated_duration)}" if view.estimated_duration is not None else ""
    tail = begins + (f"  ? {waiting} awaiting approval{' or answer' if asks else ''}" if waiting else "")
    held = "  ".join(line(each.text) for each in view.notices.values() if each.holds) or line(view.stopped or "")
    held = cut(held, HELD_ROWS * (width - 15))  # a row that is broken at a word is shorter
    title = line(view.title or view.id)
    if waiting and cell_len(title) + cell_len(tail) > width:
        tail = f"{begins}  ? {waiting} to decide"
    fits = not held or cell_len(title) + cell_len(tail) + 2 + cell_len(held) <= width
    title = cut(title, max(8, width - cell_len(tail)))
    return Text.assemble((title, "bold"), tail, "" if not held else f"{'  ' if fits else chr(10)}{held}")


def rows(view: PlanView, width: int, around: Around = NOTHING) -> list[Text]:
    """One row per step, each of at most `width` cells."""
    steps = shown_steps(view)
    name = min(18, max((cell_len(line(_name(step))) for step in steps), default=0))
    tool = min(14, max((cell_len(line(step.tool)) for step in steps), default=0))
    faulty = {problem.step_id for problem in view.problems}
    asked = {item.step_id for item in view.pending}
    asking = {step.id for step in steps if step.requires_approval or around.will_ask(step)}
    number = len(str(len(steps)))
    places = {step.id: index for index, step in enumerate(view.steps, 1)}
    after = {step.id: _after(step, places) for step in steps}
    needs = max(map(len, after.values()), default=0)
    widths = (number, name, tool, needs, width)
    return [_row(step, places.get(step.id, ""), after[step.id], widths, faulty, asked, asking) for step in steps]


def detail(view: PlanView, step: StepView, tools: Mapping[str, ToolSpec], around: Around = NOTHING) -> Table:
    """A step in full: labels and values of any length."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(width=LABEL, style="bold", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for name, value, style in _facts(view, step, tools, around):
        shown = Text(value, style) if style != DIFF else coloured(value)
        table.add_row(Text(name), shown)
    return table


def change_log(view: PlanView) -> Text:
    """The change log, newest first."""
    if not view.changes:
        return Text("No changes yet.")
    text = Text()
    for change in reversed(view.changes):
        by = f" by {line(change.who)}" if change.by else ""
        time = change.time.strftime("%Y-%m-%dT%H:%M:%S") if change.time else ""
        text.append(f"version {change.version}{by}", "bold").append(f"  {time}\n")
        reason = line(change.reason)
        text.append(f"  {reason}\n" if reason else "")
        text.append("".join(f"  {line(each)}\n" for each in change.diff))
    return text


def news(view: PlanView, since: int) -> str:
    """The changes after a version, on one line."""
    found = [change for change in view.changes if change.version > since]
    parts = [f"{line(each.who or 'unknown')}: {line('; '.join(each.diff[:3]))}" for each in found[-3:]]
    return f"version {view.version}" + (f" ({'; '.join(parts)})" if parts else "")


def cut(text: str, width: int) -> str:
    """Truncate a text to at most `width` cells."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def may_edit(step: StepView) -> bool:
    """Whether the step has not started, according to this view; the plan itself decides."""
    return step.status in UNTOUCHED or step.status == "skipped"


def _after(step: StepView, places: Mapping[str, int]) -> str:
    """The numbers of the steps it depends on."""
    found = ",".join(str(places[name]) for name in step.needs if name in places)
    return f"after {cut(found, 7)}" if found else ""


def _name(step: StepView) -> str:
    """The id; of a step inside another one, the part that tells it from others: `[cat.png].thumb`.

    What closes the plan has no row above it that says of what it is.
    """
    inner = step.id.lstrip(WORD)
    return inner if is_inside(step) and not step.closes else step.id


def _row(
    step: StepView, index: int | str, after: str, widths: tuple[int, ...], faulty: set[Any], asked: set[Any],
    asking: set[str],
) -> Text:  # fmt: skip
    number, name, tool, needs, width = widths
    mark, style = UNTOUCHED_MARK if step.status in UNTOUCHED else MARKS[stands(step).sign]
    mark, style = ASKING if step.id in asked else (mark, style)
    flags = _flags(step, faulty, asked, asking)
    head = (
        f"{mark} {index:>{number}} {_fill(line(_name(step)), name)}  {_fill(line(step.tool), tool)}  {after:<{needs}}  "
    )
    room = max(0, width - cell_len(head) - cell_len(flags) - 1)
    below = below_text(step) if step.status == Status.RUNNING else ""
    told = _error(step) or below or inside_text(step) or f"{step.description[:200]}  {_args(step)}".strip()
    text = Text(head, style if mark not in "☐" else "", no_wrap=True)
    text.append(_fill(line(told), room) + " ")
    return text.append(flags, "bold" if step.id in faulty | asked else "")


def _error(step: StepView) -> str:
    """Of an item that failed, why: what it would do is in the row of its loop."""
    return stands(step).error if is_inside(step) else ""


def _args(step: StepView) -> str:
    return shorten(step.args) if step.args else ""


def _flags(step: StepView, faulty: set[Any], asked: set[Any], asking: set[str]) -> str:
    if step.id in faulty:
        return "✗ problem"
    if step.id in asked:
        return "? answer: y" if step.awaiting == "answer" else "? approve: y/n"
    if step.status in UNTOUCHED and step.id in asking and not step.permanently_blocked:
        return "⚠ approval"
    return "" if step.status in UNTOUCHED and not step.permanently_blocked else stands(step).word


def _fill(text: str, width: int) -> str:
    return set_cell_size(cut(text, width), width)


def _facts(
    view: PlanView, step: StepView, tools: Mapping[str, ToolSpec], around: Around
) -> Iterator[tuple[str, str, str]]:
    item = next((each for each in view.pending if each.step_id == step.id), None)
    for problem in view.problems:
        if problem.step_id == step.id:
            yield "problem", f"✗ {line(problem.field or '')}: {line(problem.message)}", "bold red"
    for problem in races_among(view.steps) if view.status == "review" else ():
        if problem.step_id == step.id:
            yield "race", f"! {line(problem.message)}", "bold yellow"
    if item:
        keys = "y answers" if item.is_question else "y approves, n denies, N says why"
        keys += ", e edits" if item.takes_args else ""
        yield "awaiting", f"? {line(item.kind)}: {keys}", "bold yellow"
    if step.description:
        yield "step", exact(step.description), ""
    if inside := inside_text(step):
        yield "inside", inside, ""
    if below := below_text(step):
        yield ("child plan" if step.child is not None else "its agent"), below, ""
    if name := below_id(step):
        yield "see", f"plan show {name}{OR}plan review {name}", ""
    for way in ways_below(view.id, step):
        yield "asks", way, "bold yellow"
    spec = tools.get(step.tool)
    is_asked = item is not None and not item.is_question
    why = around.why(step) if step.status in UNTOUCHED else ""
    approval = f"⚠ {line(why)}" if why else "no approval needed"
    approval = "⚠ needs approval" if step.requires_approval or is_asked else approval
    yield "tool", f"{line(what(step))}, {approval}", ""
    if not may_edit(step) or step.failure:
        yield from _fate(step)
    call = item or Card(step_id=step.id, kind="", tool=step.tool, args=step.args)
    yield from _call(around.card(call))
    yield from _relations(view, step)
    if may_edit(step) and not step.failure:
        yield from _fate(step)
    if spec:
        yield "about", line(spec.description), ""


def _call(card: Card) -> Iterator[tuple[str, str, str]]:
    """The call in full: what one decides about, whether it awaits a decision or is about to begin."""
    for warning in card.warnings:
        yield "unusual", f"! {warning}", "bold yellow"
    yield from map(_part, card.why)
    for name, text in card.change.items():
        yield (name, exact(text), "") if name == NOW else ("diff", exact(text), DIFF)
    subject = card.subject if card.call is None else [Named(*each) for each in card.call.items()]
    # Of what a diff stands for, every line that differs is in the diff
    yield from (_part(part) for part in subject if part.name not in card.change)
    for sentence in card.unseen:
        yield "large", f"! {sentence}", "bold yellow"
    yield from map(_part, (*card.stored, *card.undoing))
    if card.always:
        yield "always", f"A approves as well: {exact(card.always)}", ""
    yield from (_part(part) for part in card.places if part.name != "what")  # the step's description is above


def _part(part: Named) -> tuple[str, str, str]:
    """A part of a call as a row, exactly; a name that the column is too narrow for is written out beside it."""
    name, value = part
    shown = exact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    is_short = cell_len(exact(name)) <= LABEL
    return (name, shown, "") if is_short else (cut(line(name), LABEL), f"{exact(name)}:\n{shown}", "")


def _relations(view: PlanView, step: StepView) -> Iterator[tuple[str, str, str]]:
    if step.needs:
        yield "after", ", ".join(step.needs), ""
    followers = [each.id for each in view.steps if step.id in each.needs]
    if followers:
        yield "before", cut(", ".join(followers), 200), ""
    stated = step.model_dump(mode="json", include=set(names(Step, On.DETAILS)), exclude_unset=True)
    for name in aliases(Step, On.DETAILS):
        if stated.get(name):
            yield name, _value(stated[name]), ""
    if step.critical:
        yield "critical", "if it fails, the plan stops", ""


def _fate(step: StepView) -> Iterator[tuple[str, str, str]]:
    by = f", waits for {', '.join(step.blocked_by[:10])}" if step.blocked_by else ""
    here = stands(step)
    yield "status", f"{line(here.how)}{by}", ""
    for each in verdicts(step.decision, step.answer):
        yield "decision", line(f"{each.verb} {each.text}"), ""
    if here.reason:
        yield "reason", line(here.reason), ""
    if step.tasks:
        yield "tasks", "\n".join(f"{TASKS[task.status]} {line(task.objective)}" for task in step.tasks), ""
    for warning in step.warnings:
        yield "warning", line(warning), "yellow"
    result = step.result or step.failure
    if result and result.error:
        yield "error", safe(result.error)[:MAX_VALUE], "red"
    elif result and result.value is not None:
        yield "result", _value(result.value), ""


def _value(value: Any) -> str:
    text, length = shortened(value, MAX_VALUE)
    more = f"\n... {length - MAX_VALUE} more characters" if length > MAX_VALUE else ""
    return safe(text.replace("\t", "    ")) + more

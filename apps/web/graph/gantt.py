"""The steps of a plan against time: bars as shares of the plan's duration, for a template that draws them.

A bar is what the view says of a step: the time it waited for a person, each attempt that was recorded, and the time it
ran. How long it waited follows from the end of what it depends on and the time of the decision. Above `ROWS` steps, the
groups of the graph are one bar each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from plansurvive.apps.web.graph.folding import FOLD, fold, members
from plansurvive.apps.web.graph.tree import Node, tree_of
from plansurvive.plans.run import ENDED
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import PlanView, StepView
from plansurvive.plans.views.models.records import ToolCallView
from plansurvive.plans.views.steps.row import status_word

ROWS = 200
"""Rows of one time line."""
TICKS = 6
ATTEMPTS = 20
"""Attempts of one step that are drawn."""
LEAST = 0.002
"""Share of the width that the shortest bar has."""
ROOM_AHEAD = 1.04
"""How much longer than until now the time line of a plan is that still runs."""
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800)


class Bar(NamedTuple):
    """A bar in a row, in percent of the width."""

    x: float
    width: float
    look: str
    """A status, `attempt`, or `wait`."""
    says: str
    runs: bool = False
    """Whether it ends now."""


class Row(NamedTuple):
    """A step, or a group of steps."""

    id: str
    """Empty for a group."""
    label: str
    status: str
    bars: tuple[Bar, ...]


class Tick(NamedTuple):
    """A mark of the scale, in percent of the width."""

    x: float
    text: str


class TimeLine(NamedTuple):
    """What the template draws."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    now: float | None
    """Where the present is, in percent; None once the plan has ended."""
    began: int
    """The left edge, in milliseconds since 1970."""
    length: int
    """The whole width, in milliseconds."""
    more: int
    """Steps or groups that have begun and have no row."""


def time_line(view: PlanView, now: datetime) -> TimeLine | None:
    """The time line of a plan; None if nothing has begun. Raises BadExpression."""
    if view.started_at is None:
        return None
    end = view.ended_at if view.ended_at and view.status in ENDED else now
    length = max((end - view.started_at).total_seconds(), 1.0) * (1 if end is not now else ROOM_AHEAD)
    scale = _Scale(view.started_at, length, end)
    rows = [row for row in _rows(view, scale) if row.bars]
    ended = None if end is not now else scale.at(now)
    began, whole = int(view.started_at.timestamp() * 1000), int(length * 1000)
    return TimeLine(tuple(rows[:ROWS]), tuple(_ticks(length)), ended, began, whole, max(0, len(rows) - ROWS))


class _Scale(NamedTuple):
    began: datetime
    length: float
    now: datetime

    def at(self, moment: datetime) -> float:
        share = (moment - self.began).total_seconds() / self.length
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def bar(self, start: datetime, end: datetime | None, look: str, says: str) -> Bar:
        x, until = self.at(start), self.at(end or self.now)
        return Bar(x, max(round(until - x, 3), 100 * LEAST), look, says, end is None)


def _rows(view: PlanView, scale: _Scale) -> Iterator[Row]:
    steps = {step.id: step for step in view.steps}
    ends = {step.id: step.ended_at for step in view.steps}
    asked = {each.step_id: each.since for each in view.pending}
    if len(view.steps) <= ROWS:
        history = view.step_tool_history
        for index, step in enumerate(view.steps):
            yield _row(step, history.get(str(index), []), ends, asked, scale)
        return
    for node in fold(tree_of(view)):
        yield from _group(node, steps, scale)


def _row(
    step: StepView,
    calls: Sequence[ToolCallView],
    ends: Mapping[str, datetime | None],
    asked: Mapping[str, datetime | None],
    scale: _Scale,
) -> Row:
    bars = [*_wait(step, ends, asked.get(step.id), scale), *_ran(step, scale), *_attempts(calls, scale)]
    return Row(step.id, line(step.description or step.id), status_word(step), tuple(bars))


def _wait(step: StepView, ends: Mapping[str, datetime | None], since: datetime | None, scale: _Scale) -> Iterator[Bar]:
    """The time a person took to decide: until the decision, or until now."""
    if step.awaiting in ("approval", "answer"):
        yield scale.bar(since or _ready(step, ends, scale), None, "wait", f"awaiting {step.awaiting}")
        return
    decided = step.decision.time if step.decision else step.answer.time if step.answer else None
    ready = _ready(step, ends, scale)
    if decided is not None and decided - ready > timedelta(seconds=scale.length * LEAST):
        by = step.decision.by if step.decision else step.answer.who if step.answer else ""
        told = _length((decided - ready).total_seconds())
        yield scale.bar(ready, decided, "wait", f"waited {told} for {line(by) or 'a person'}")


def _ready(step: StepView, ends: Mapping[str, datetime | None], scale: _Scale) -> datetime:
    return max((end for name in step.needs if (end := ends.get(name))), default=scale.began)


def _ran(step: StepView, scale: _Scale) -> Iterator[Bar]:
    """The time it ran. A step that asks has been checked before, which is no run: it runs once that is decided."""
    if step.started_at is None or step.awaiting in ("approval", "answer"):
        return
    decided = step.decision.time if step.decision else None
    begin, end = max(step.started_at, decided or step.started_at), step.ended_at
    seconds = ((end or scale.now) - begin).total_seconds()
    yield scale.bar(begin, end, status_word(step), f"{status_word(step)}, {_length(seconds)}")


def _attempts(calls: Iterable[ToolCallView], scale: _Scale) -> Iterator[Bar]:
    """The attempts that were recorded one by one, if there was more than one."""
    known = [each for each in calls if each.timestamp is not None and each.duration is not None]
    for call in islice(known, ATTEMPTS) if len(known) > 1 else ():
        if call.timestamp is not None and call.duration is not None:
            end = call.timestamp + timedelta(milliseconds=call.duration)
            says = f"attempt {call.attempt or '?'}: {line(call.code or 'completed')}, {_length(call.duration / 1000)}"
            yield scale.bar(call.timestamp, end, "attempt is-failed" if call.code else "attempt is-completed", says)


def _group(node: Node, steps: Mapping[str, StepView], scale: _Scale) -> Iterator[Row]:
    """One row for what is folded in the graph: from the first beginning to the last end."""
    found = [steps[each.id] for each in members(node) if each.id in steps]
    began = [step.started_at for step in found if step.started_at]
    if not began:
        return
    is_open = any(step.started_at and not step.ended_at for step in found)
    end = None if is_open else max((step.ended_at for step in found if step.ended_at), default=None)
    words = [status_word(step) for step in found]
    worst = next((word for word in ("failed", *DENIALS.values(), "running") if word in words), None)
    status = worst or ("completed" if words.count("completed") == len(words) else "running")
    done = sum(word in ("completed", "skipped") for word in words)
    says = f"{done:,} of {len(found):,} done, {_length(((end or scale.now) - min(began)).total_seconds())}"
    label = node.label if node.kind == FOLD else found[0].id
    yield Row("" if node.kind == FOLD else node.id, label, status, (scale.bar(min(began), end, status, says),))


def _ticks(length: float) -> Iterator[Tick]:
    every = next((step for step in _STEPS if length / step <= TICKS), _STEPS[-1])
    count = min(int(length // every), 20)
    return (Tick(round(100 * number * every / length, 3), _length(number * every)) for number in range(count + 1))


def _length(seconds: float) -> str:
    """A duration: 0.4 s, 12 s, 3:05, 1:02:03, 2 d 1:00:00."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours}:{minutes:02}:{rest:02}" if hours or days else f"{minutes}:{rest:02}"
    return f"{days} d {text}" if days else text

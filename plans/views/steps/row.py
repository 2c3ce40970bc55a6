"""A row: how a step stands, with all that any list of steps says of it. Views lay it out and compute nothing.

`row` is made of a step's state in a run as well as of every view of a step; `live_row` knows more of one that runs.
Texts of plans and tools are as they are: a view escapes them (`plans.text.safe_text`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from plansurvive.plans.run import Decision, Status, StepState
from plansurvive.plans.step_state import DENIALS, Answered, by_name
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.text.spans import in_words as span
from plansurvive.plans.text.traces import folded
from plansurvive.plans.views.models import BriefStep, DecisionView, StepView
from plansurvive.plans.views.models.live import attempt_text, told
from plansurvive.plans.views.steps.child import in_words
from plansurvive.plans.views.steps.words import inside_line

MARKS: Mapping[str, str] = MappingProxyType({
    "completed": "✓", "failed": "✗", "running": ">", "skipped": "-", **dict.fromkeys(DENIALS.values(), "-"),
    "waiting": "?", "ready": " ", "blocked": " ", "pending": " ",
})  # fmt: skip
"""Marks of the text display, by `Row.sign`."""

_NOT_BEGUN = (Status.PENDING, Status.BLOCKED, Status.READY)


class Row(NamedTuple):
    """How a step stands."""

    sign: str
    """By which it is marked and coloured: its status, or `denied`, `unanswered`, or `waiting` for something."""
    word: str
    """The same in words: `awaiting approval`, `permanently blocked`."""
    code: str = ""
    error: str = ""
    """Its error, if it failed or is tried again."""
    reason: str = ""
    """Why it was skipped or denied, or cannot start."""
    took: str = ""
    """How long it took; of one that runs, so far."""
    attempt: str = ""
    """Which attempt that was, from the second on, or is: `attempt 2 of 3 in 1 s`."""
    taken_from: str = ""
    """The earlier run that its result is from."""
    tasks: str = ""
    """How many tasks of its agent are done."""
    share: int | None = None
    """Progress in percent, if it is known."""
    text: str = ""
    """What it is doing: its last line of progress, what is inside it, its item, or its description."""
    child: str = ""
    """How the plan that it runs stands, and whether that or its agent awaits decisions."""

    @property
    def mark(self) -> str:
        """The mark of the text display."""
        return MARKS[self.sign]

    @property
    def how(self) -> str:
        """In words, with how long it took: `completed in 3.2 s, attempt 2`, `failed after 0.1 s (NOT_FOUND)`."""
        took = f" {'after' if self.sign == 'failed' else 'in'} {self.took}" if self.took else ""
        code = f" ({self.code})" if self.code else ""
        more = [self.attempt, f"from {self.taken_from}" if self.taken_from else ""]
        return ", ".join(filter(None, (f"{self.word}{took}{code}", *more)))


class Verdict(NamedTuple):
    """A decision or an answer in words."""

    verb: str
    """approved, denied or answered."""
    by: str
    """Who decided, or that its time limit did: `by ann (web)`; empty if nobody gave a name."""
    how: str = ""
    """What else is special about it."""
    comment: str = ""
    time: datetime | None = None

    @property
    def was(self) -> str:
        """All of it, as the end of a sentence: `was approved by ann`."""
        return f"was {self.verb} {line(self.text)}"

    @property
    def text(self) -> str:
        """All of it but the verb."""
        when = f"{self.time:%Y-%m-%d %H:%M:%S} UTC" if self.time else ""
        text = ", ".join(filter(None, (self.by, when, self.how)))
        return f"{text}: {self.comment}" if self.comment else text


def row(step: StepState | StepView | BriefStep) -> Row:
    """The row of a step."""
    status, result = step.status, step.result
    if step.awaiting:
        return Row("waiting", f"awaiting {step.awaiting}")
    word = sign = status_word(step)
    if status is Status.BLOCKED and step.permanently_blocked:
        word = "permanently blocked"
    reason: str = getattr(step, "reason", "")  # a brief view has none
    if result is None or status not in (Status.COMPLETED, Status.FAILED):
        reason = reason or denied_ahead(getattr(step, "decision", None), status)
        return Row(sign, word, reason=folded((result.error if result is not None else None) or reason))
    return Row(
        sign,
        word,
        code=result.code or "",
        error=folded(result.error or "") if status is Status.FAILED else "",
        reason=reason,
        took=seconds(result.duration / 1000) if result.duration else "",
        attempt=f"attempt {result.attempt}" if result.attempt > 1 else "",
        taken_from=result.taken_from or "",
    )


def live_row(step: BriefStep, now: datetime) -> Row:
    """The row of a step in a list that follows the plan."""
    found, live, child = row(step), step.live, step.child
    is_inner = live is not None and bool(live.what)  # its percent and attempts are not the step's own
    now_line = told(live, now) if live and is_inner else live.line if live else ""
    parts = [inside_line(step.inside) if step.inside else "", now_line]
    standing = in_words(child.status, child.counts, len(child.pending) + child.more) if child else _asked(step)
    found = found._replace(text=" · ".join(filter(None, parts)) or step.item or step.description, child=standing)
    if found.sign != "running":
        return found
    done = sum(task.status == "done" for task in step.tasks)
    is_retried = live is not None and live.next_at is not None and not is_inner
    last = live.attempts[-1] if live and is_retried and live.attempts else None
    return found._replace(
        error=folded(last.error or "") if last else "",  # of the attempt before the one that it waits for
        tasks=f"{done}/{len(step.tasks)} tasks" if step.tasks else "",
        share=None if is_inner or _rests(step) else percent(step, now),
        attempt=_attempt(step, now),
        took="" if is_retried or step.started_at is None else seconds((now - step.started_at).total_seconds()),
    )


def _asked(step: BriefStep) -> str:
    """How many decisions the calls of its agent await."""
    number = len(step.agent_asks.step_ids) if step.agent_asks and step.status is Status.RUNNING else 0
    return f"{number} awaiting a decision" if number else ""


def _rests(step: BriefStep) -> bool:
    """Whether it waits for its next round, which is no share of the step."""
    return step.until is not None and step.inside is not None and step.inside.kind == "repeat"


def _attempt(step: BriefStep, now: datetime) -> str:
    """Its attempt; of one that rests between its rounds, when the next begins."""
    if _rests(step) and step.until is not None and step.until > now:
        return f"next round in {span(round((step.until - now).total_seconds()))}"
    return attempt_text(step.live, now) if step.live and not step.live.what else ""


def percent(step: BriefStep, now: datetime) -> int | None:
    """Progress of a running step: as its tool reports it, or the share of a sleep that has passed."""
    if step.live is not None and step.live.progress is not None:
        return step.live.progress
    if step.until is None or step.started_at is None or step.until <= step.started_at:
        return None
    share = (now - step.started_at) / (step.until - step.started_at)
    return int(100 * min(max(share, 0.0), 1.0))


def status_word(step: StepState | StepView | BriefStep) -> str:
    """The status of a step in a word; `denied` and `unanswered` are not just `skipped`."""
    if step.status is not Status.SKIPPED or step.result is None:
        return step.status.value
    return DENIALS.get(step.result.code or "", step.status.value)


def shortened(value: Any, room: int, indent: int | None = None) -> tuple[str, int]:
    """A value as text of at most `room` characters, and the length of all of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)
    return text[:room], len(text)


def decided(decision: Decision | DecisionView) -> Verdict:
    """A decision in words."""
    how = ["as a call of the same kind was before it"] if decision.remembered else []
    how += ["with changed arguments"] if decision.changed_args else []
    verb = "approved" if decision.approved else "denied"
    return Verdict(verb, by_name(decision), ", ".join(how), decision.comment, decision.time)


def denied_ahead(decision: Decision | DecisionView | None, status: Status) -> str:
    """Of a step that was denied before its turn: by whom and why; empty of others."""
    if decision is None or decision.approved or status not in _NOT_BEGUN:
        return ""
    return f"denied {decided(decision).text}".rstrip()


def verdicts(decision: Decision | DecisionView | None, answer: Answered | None) -> list[Verdict]:
    """What people said about a step, in words: the decision about it, and the answer."""
    said = [decided(decision)] if decision is not None else []
    return [*said, *([Verdict("answered", by_name(answer), time=answer.time)] if answer is not None else [])]

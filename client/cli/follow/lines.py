"""Progress as plain lines, one per event, for logs and pipes.

A step gets a line when it starts, awaits approval or ends, but not while it waits for other steps. Of a long loop only
the items that fail or ask get lines; the others are counted. An error is printed once, where it happened: not again for
each block and loop around it. The only state is what the plan's brief view and the events so far say of the steps.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from plansurvive.client.feature import views_of_features
from plansurvive.client.live.feed import ATTEMPT, LONG_LOOP, PROGRESS
from plansurvive.client.live.marks import ASKING as MARK
from plansurvive.client.live.marks import MARKS
from plansurvive.client.verbs.runs import BriefView, EventView
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.flow.ids import around, template_of
from plansurvive.plans.run import Status
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import BriefStep, listed_steps
from plansurvive.plans.views.models.card import QUESTION, Card
from plansurvive.plans.views.models.live import ended_text
from plansurvive.plans.views.progress.events import LogLine
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.plans.views.steps.row import Row, row
from plansurvive.plans.views.steps.words import numbers

SHARE = 10
"""Percent of progress between two lines about a step."""
DETAILS = 20
"""How many lines of an error are printed below its first one."""
COUNTS = 5
"""How many lines count the items of a long loop."""
ENDED = ("completed", "failed", "skipped")
"""Status of an event after which the step does not run again, unless it is recovered."""


class Lines:
    """The lines of one plan's events."""

    def __init__(self, plan: str, view: BriefView) -> None:
        self._plan = plan
        self._shares: dict[str, dict[str | None, int]] = {}
        self._attempts: set[tuple[str, datetime]] = set()
        self.compared: dict[str, Card] = {}
        """By digest, cards with the diff of a file."""
        self._items: dict[str, Counter[str]] = {}
        """By loop, how many of its items have ended, by status."""
        self._explained: set[str] = set()
        """What failed because of a step inside it whose failure has been printed."""
        self._last = datetime.min.replace(tzinfo=UTC)
        """The time of the last line: no later one begins with an earlier time."""
        self.learn(view)

    def learn(self, view: BriefView) -> None:
        """Take over steps and open approvals of a newer view (an agent adds steps, edits change them)."""
        self._seen = view.seq
        self._asked = {item.step_id: item for item in view.pending}
        self._templates = {step.id: step for step in view.templates}
        self._steps = {each.id: each for each in listed_steps(view.steps)}
        nested = any(step.kind != "call" for step in view.steps)
        self._width = 24 if nested else min(24, max([len("plan"), *map(len, self._steps)]))

    def knows(self, event: EventView) -> bool:
        """Whether the event can be printed with the view learned last: a known step, and not a newer approval."""
        if self._asks(event) and event.seq > self._seen:
            return False
        return not event.step_id or self._known(event.step_id) is not None

    def opens(self, event: EventView) -> bool:
        """Whether a loop begins with this, after the view learned last: how many items it has is not known."""
        if event.logs or event.status != "running" or event.seq <= self._seen or event.step_id.endswith("]"):
            return False
        step = self._known(event.step_id)
        return step is not None and step.kind == "each"

    def _known(self, step_id: str) -> BriefStep | None:
        """What is known of a step; of an instance that is not listed, what the plan says of all of them."""
        path = template_of(step_id)
        found = self._steps.get(step_id) or self._templates.get(path)
        if found is None and path.partition(".")[0] in self._steps:
            outer = self._steps[path.partition(".")[0]]
            is_call = path == outer.id and (outer.tool or path == step_id)
            # What undoes a child plan is known to the plan alone.
            kind = "call" if path.endswith(f".{UNDO}") else "block"
            found = outer if is_call else BriefStep(id=step_id, tool="", kind=kind)
        return found

    def asked(self, event: EventView) -> Card | None:
        """The decision that the event is about, if it is still awaited."""
        item = self._asked.get(event.step_id) if self._asks(event) else None
        return item if item and not (event.digest and item.digest != event.digest) else None

    def clock(self, event: EventView) -> str:
        """Time of an event, the start of each line."""
        return event.time.astimezone().strftime("%H:%M:%S")

    def of(self, event: EventView) -> list[str]:
        """Lines to print for an event; often none."""
        asks = self._asks(event)
        self.take(event)
        if event.logs:
            rows = [self._said(event, entry) for entry in event.logs if self._is_due(event, entry)]
        else:
            rows = [*self._attempted(event), *self._moved(event, asks), *self._counted(event)]
        if rows and not any(entry.kind == PROGRESS for entry in event.logs or ()):  # that has this machine's clock
            self._last = max(self._last, event.time)
        return rows

    def _moved(self, event: EventView, asks: bool) -> list[str]:
        """Lines about a change of a step's status."""
        step = self._known(event.step_id) or BriefStep(id=event.step_id, tool="")
        if event.status == "ready":
            return self._question(event, step) if asks else []
        is_folded = any(self._total(name) > LONG_LOOP for name in around(event.step_id))
        if event.status == "failed":
            return self._failed(event, is_folded)
        if is_folded:
            return []
        if event.status == "running":
            return [self._row(event, MARKS["running"][0], self._what(step))]
        if event.status in ("completed", "skipped"):
            return [self._row(event, MARKS[event.status][0], self._how(event)), *_details(event)]
        return []

    def _failed(self, event: EventView, is_folded: bool) -> list[str]:
        """Lines about a failure; without the error that the line of a step inside it has."""
        is_explained = event.step_id in self._explained
        self._explained.update(around(event.step_id))
        if not is_explained:
            return [self._row(event, MARKS["failed"][0], self._how(event)), *_details(event)]
        return [] if is_folded else [self._row(event, MARKS["failed"][0], line(_stands(event).how))]

    def _counted(self, event: EventView) -> list[str]:
        """How many items of a long loop have ended: `COUNTS` lines in all."""
        if event.status not in ENDED or not event.step_id.endswith("]"):
            return []
        loop = next(around(event.step_id))
        ended, total = self._items[loop], self._total(loop)
        done = ended.total()
        if total <= LONG_LOOP or done * COUNTS // total == (done - 1) * COUNTS // total:
            return []
        then = event.model_copy(update={"step_id": loop})
        return [self._row(then, " ", f"{done:,} items ended: {', '.join(numbers(ended))}")]

    def _total(self, step_id: str) -> int:
        """How many items a loop has; 0 for any other step, and while that is not known."""
        step = self._steps.get(step_id)
        return (step.inside.total or 0) if step and step.inside and step.inside.kind == "each" else 0

    def take(self, event: EventView) -> None:
        """Update the state with an event, whether it is printed or not."""
        if event.logs:
            return
        if event.status in ("running", "ready"):
            self._shares.pop(event.step_id, None)
            self._explained.discard(event.step_id)
        if event.status in ENDED and event.step_id.endswith("]"):
            loop = next(around(event.step_id))
            self._items.setdefault(loop, Counter())[event.status] += 1

    def _is_due(self, event: EventView, entry: LogLine) -> bool:
        """Whether a log line is printed: of each attempt, one, and of progress, one per ten percent of each call."""
        self._attempts |= {(event.step_id, attempt.began) for attempt in event.attempts or ()}
        if entry.kind != PROGRESS:
            return True
        shares, share = self._shares.setdefault(event.step_id, {}), (event.progress or 0) // SHARE
        before = shares.get(entry.subject, 0)
        shares[entry.subject] = max(before, share)
        return share > before

    def _attempted(self, event: EventView) -> list[str]:
        """Lines about the attempts of an ended call that have no line yet: it is past, or they were short."""
        rows = []
        for attempt in event.attempts or ():
            if (event.step_id, attempt.began) not in self._attempts:
                self._attempts.add((event.step_id, attempt.began))
                then = event.model_copy(update={"time": attempt.ended})
                rows.append(self._late(then, line(ended_text(attempt, None))))
        return rows

    def _said(self, event: EventView, entry: LogLine) -> str:
        return self._late(event, line(entry.text)) if entry.kind == ATTEMPT else self._row(event, " ", line(entry.text))

    def _late(self, event: EventView, text: str) -> str:
        """A line about what may have ended before the line above: that an attempt was lost is found out later."""
        if event.time.replace(microsecond=0) >= self._last.replace(microsecond=0):
            self._last = max(self._last, event.time)
            return self._row(event, " ", text)
        return self._row(event.model_copy(update={"time": self._last}), " ", f"{text} (at {self.clock(event)})")

    def _asks(self, event: EventView) -> bool:
        """Whether the step asks a person with this."""
        return event.awaiting in ASKING

    def _question(self, event: EventView, step: BriefStep) -> list[str]:
        """What was asked then: whole if it is still asked, or was asked last; of what came before, as events tell."""
        item, asked, more = self._asked.get(event.step_id), event.asked, []
        if item is None or (event.digest and item.digest != event.digest):  # decided, or it has asked again since
            args, kind = step.args or {}, QUESTION if ASKING.get(event.awaiting) else "approval"
            if asked is not None and (not step.digest or step.digest != event.digest):
                args, kind = asked.args, asked.kind
                more = [f"(cut: {asked.length or 0:,} characters in all)"] if asked.cut else []
            item = Card.of(views_of_features(), step_id=event.step_id, kind=kind, tool=step.tool, args=args)
        call = [self._row(event, " ", row) for row in [*call_rows(self.compared.get(item.digest, item)), *more]]
        ways = self._row(event, " ", item.commands(self._plan))
        return [self._row(event, MARK[0], f"awaiting {item.wanted}:"), *call, ways]

    def _what(self, step: BriefStep) -> str:
        what = step.tool or (step.kind if step.kind not in ("call", "each") else "")
        times = f"x {self._total(step.id):,}" if self._total(step.id) else ""
        return line(" · ".join(filter(None, (f"{what} {times}".strip(), step.description))))

    def _how(self, event: EventView) -> str:
        stands = _stands(event)
        reason = line(next(iter(_reason(event)), ""))[:300]
        return line(stands.how) if stands.sign == "completed" else f"{line(stands.how)}: {reason}"

    def _row(self, event: EventView, mark: str, text: str) -> str:
        name = line(event.step_id or "plan")
        return f"{self.clock(event)}  {mark} {name:<{self._width}}  {text}".rstrip()


def _stands(event: EventView) -> Row:
    return row(BriefStep(id="", tool="", status=Status(event.status), result=event.result))


def _reason(event: EventView) -> list[str]:
    return (event.result.error or "").splitlines() if event.result else []


def _details(event: EventView) -> list[str]:
    """The lines below the first one of an error, such as a diff; cut to DETAILS lines."""
    rest = _reason(event)[1:]
    more = [f"… {len(rest) - DETAILS} more lines; see all: plan show"] if len(rest) > DETAILS else []
    return [f"{'':13}{line(row)[:200]}".rstrip() for row in [*rest[:DETAILS], *more]]

"""Progress as plain lines, one per event, for logs and pipes.

A step is told when it starts, asks, ends; that it waits its turn is not. Keeps what it needs to know of the steps from
the plan's brief view, and nothing else.
"""

from __future__ import annotations

from client.cli.follow.board import ASKING, MARKS
from client.cli.output import seconds
from client.runs import BriefView, EventView
from plans.log import LogKind
from plans.views.models import BriefStep, ResultView
from plans.views.safe_text import line
from plans.views.views import shorten

DETAILS = 20
"""Lines of an error below its first one."""


class Lines:
    """The lines of one plan's events."""

    def __init__(self, plan: str, view: BriefView) -> None:
        self._plan = plan
        self._ready: set[str] = set()
        self.learn(view)

    def learn(self, view: BriefView) -> None:
        """The steps there are now (an agent's grow in number, a plan's may be edited), and what people are asked."""
        self._seen = view.seq
        self._asked = {item.step_id: item.args for item in view.pending}
        self._steps = {step.id: step for step in view.steps}
        self._width = min(24, max([len("plan"), *map(len, self._steps)]))

    def knows(self, event: EventView) -> bool:
        """Whether the event is about the plan or a step it knows, and no question newer than what it learned."""
        if event.step_id in self._ready and event.status == "ready" and not event.logs and event.seq > self._seen:
            return False
        return not event.step_id or event.step_id in self._steps

    def clock(self, event: EventView) -> str:
        """The time of an event, as each line begins."""
        return event.time.astimezone().strftime("%H:%M:%S")

    def of(self, event: EventView) -> list[str]:
        """What to print for an event; often nothing."""
        self.take(event)
        if event.logs:
            return [self._row(event, " ", line(entry.text)) for entry in event.logs]
        step = self._steps.get(event.step_id) or BriefStep(id=event.step_id, tool="")
        if event.status == "ready":
            return self._asks(event, step)
        if event.status == "running":
            return [self._row(event, MARKS["running"][0], self._what(step))]
        if event.status in ("completed", "failed", "skipped"):
            return [self._row(event, MARKS[event.status][0], self._how(event)), *_details(event)]
        return []

    def take(self, event: EventView) -> None:
        """Take in an event, be it told or not."""
        if event.status == "blocked" or any(entry.kind == LogKind.MENDING for entry in event.logs or []):
            self._ready.discard(event.step_id)  # it was edited, or failed and may be mended: it will be ready again
        elif event.status == "running" and not event.logs:
            self._ready.add(event.step_id)  # when it is ready again, it asks

    def _asks(self, event: EventView, step: BriefStep) -> list[str]:
        if event.step_id not in self._ready:
            self._ready.add(event.step_id)
            return []
        ways = f"plan approve {self._plan} {event.step_id}   or: plan deny {self._plan} {event.step_id}"
        args = self._asked.get(event.step_id, step.args or {})  # what is asked has its references filled in
        question = f"needs approval: {line(step.tool)} {line(shorten(args))}"
        return [self._row(event, ASKING[0], question), self._row(event, " ", ways)]

    def _what(self, step: BriefStep) -> str:
        return line(" · ".join(part for part in (step.tool, step.description) if part))

    def _how(self, event: EventView) -> str:
        result = event.result or ResultView(ok=False)
        took = seconds(result.duration / 1000)
        if event.status == "completed":
            return f"completed in {took}"
        reason = line(next(iter(_reason(event)), ""))[:300]
        code = f" {result.code}" if result.code else ""
        return f"failed after {took}:{code} {reason}" if event.status == "failed" else f"skipped: {reason}"

    def _row(self, event: EventView, mark: str, text: str) -> str:
        name = line(event.step_id or "plan")
        return f"{self.clock(event)}  {mark} {name:<{self._width}}  {text}".rstrip()


def _reason(event: EventView) -> list[str]:
    return (event.result.error or "").splitlines() if event.result else []


def _details(event: EventView) -> list[str]:
    """What stands below the first line of an error, a diff say; its beginning if it is long."""
    rest = _reason(event)[1:]
    more = [f"… {len(rest) - DETAILS} more lines: plan show"] if len(rest) > DETAILS else []
    return [f"{'':13}{line(row)[:200]}".rstrip() for row in [*rest[:DETAILS], *more]]

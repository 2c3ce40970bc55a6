"""A segment of a run: which calls one activity makes, one after the other and side by side, and when it ends.

It drives a copy of the run with the code that the workflow drives the run itself with (`schedule`, `next_action`), so
that both find the same calls. It settles what succeeds and leaves the rest to the workflow: a call that may not be made
in a segment, a wait. After a failure nothing more begins: the workflow alone knows what follows from it (another
attempt, a recovery by the LLM, the end of a loop that tolerates no more).

Pure: the caller makes the calls, tells how they ended, and looks at the clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from plansurvive.features.express.carrying import Unseen
from plansurvive.features.express.joining import reason_against
from plansurvive.plans.activity_io import Return
from plansurvive.plans.execution import next_action as actions
from plansurvive.plans.execution.calling import result_of
from plansurvive.plans.execution.file_tracking import note_returned
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_call
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.ids import call_name
from plansurvive.plans.flow.progress import Further, Settle
from plansurvive.plans.model import DEFAULT_PARALLEL, Step
from plansurvive.plans.model.express import Express
from plansurvive.plans.run import PlanStatus, Result, Status
from plansurvive.plans.run.step_call import StepCall, StepValues, digest_of
from plansurvive.plans.step_state import Outcome


class Bounds(NamedTuple):
    """When a segment begins no further call."""

    seconds: float = Express().seconds
    steps: int = Express().steps
    bytes: int = 1024 * 1024
    """Of the outcomes, which are one payload of the workflow's history."""


BOUNDS = Bounds()
"""If the plan says no more than `express: true`."""


class Made(NamedTuple):
    """A call that the segment makes now."""

    step: Step
    number: int
    """Number of the step's call, from 1."""
    name: str
    """Of the call: what its activity would be called."""
    filled: Filled
    values: StepValues
    call: StepCall
    digest: str
    """Of the call: the workflow settles the outcome only of the call that it would make itself."""


@dataclass
class Segment:
    """One segment, driven on a copy of the run that is discarded afterwards. `parallel`: calls at the same time."""

    schedule: Schedule
    began: datetime
    bounds: Bounds = BOUNDS
    parallel: int = DEFAULT_PARALLEL
    barred: frozenset[str] = frozenset()
    """Steps whose calls were left by an earlier segment: they are made as activities of their own."""
    only: Collection[tuple[str, int]] | None = None
    """Calls, by step and number, that it makes; all others are left. None: all that it may."""
    partial: Mapping[str, int] = field(default_factory=dict)
    """Loops of which it has a window alone, with the number of items behind that. They go on in the workflow."""
    unseen: Unseen = field(default_factory=Unseen)
    left: dict[str, str] = field(default_factory=dict)
    """By step, why it is left to the workflow."""
    in_flight: dict[str, None] = field(default_factory=dict)
    made: int = 0
    size: int = 0
    has_failed: bool = False
    at_edge: bool = False
    """A window is at its end: what the workflow would begin next is not here."""

    def is_over(self, now: datetime) -> bool:
        """Whether no further call begins; those in flight are waited for."""
        late = self.has_failed or self.at_edge or (now - self.began).total_seconds() >= self.bounds.seconds
        return late or self.made >= self.bounds.steps or self.size >= self.bounds.bytes

    def begin(self, now: datetime) -> list[Made]:
        """The calls that begin now. Empty with nothing in flight: the segment has ended."""
        return list(self._begun(now))

    def completed(self, step_id: str, returned: Return, size: int, now: datetime) -> None:
        """A call has returned; `size`: bytes of its outcome."""
        del self.in_flight[step_id]
        self.size += size
        run, step = self.schedule.run, self.schedule.step(step_id)
        result = result_of(returned, now)
        self.schedule.rules.settled(run, step, returned, result)
        note_returned(run, step, returned, now)  # a later call gets the stamps of the files as this one has left them
        self.schedule.settle(step_id, Outcome(Status.COMPLETED, result), now)

    def failed(self, step_id: str) -> None:
        """An attempt has failed."""
        del self.in_flight[step_id]
        self.has_failed = True

    def leave(self, step_id: str, why: str) -> None:
        """A call that has begun is made as an activity of its own."""
        del self.in_flight[step_id]
        self.left[step_id] = why

    def stop(self) -> None:
        """Begin no further call."""
        self.has_failed = True

    def is_full(self) -> bool:
        """Whether no further call may be made beside those in flight."""
        # What is left keeps its place: in the workflow it may be running.
        return len(self.in_flight) + len(self.left) >= self.parallel

    def _begun(self, now: datetime) -> Iterator[Made]:
        schedule = self.schedule
        while schedule.run.status is PlanStatus.RUNNING:
            self.proceed(now)
            if self.is_over(now) or self.is_full():
                return
            if self.only is not None and self.made >= len(self.only):
                return  # of a wide plan thousands may be ready, which the workflow acts on a few at a time
            step_id = next((name for name in schedule.ready if name not in self.left), None)
            if step_id is not None:
                if (made := self._act_on(step_id, now)) is not None:
                    yield made
            elif not schedule.open_next(self.parallel, now):
                return
            else:
                self.at_edge = any(behind and self._is_used_up(name) for name, behind in self.partial.items())

    def _act_on(self, step_id: str, now: datetime) -> Made | None:
        schedule, step = self.schedule, self.schedule.step(step_id)
        if step_id in self.barred:
            self.left[step_id] = "an earlier segment left it"
            return None
        match actions.next_action(schedule, step_id):
            case actions.Skip(reason, opens, code):
                self.skip(step_id, reason, now, opens, code)
            case actions.Open(opened):
                schedule.start(step_id, now)
                schedule.open(step_id, opened, now)
            case actions.Call() as call:
                why = reason_against(schedule.run, step, call) or self._other(step_id)
                why = why or self.unseen.reason_against(schedule.run, step, call.filled)
                if not why:
                    return self._make(step, call, now)
                self.left[step_id] = why
            case actions.Fail():
                self.has_failed = True
            case other:
                self.left[step_id] = _LEFT[type(other)]
        return None

    def _is_used_up(self, loop: str) -> bool:
        """Whether all items of a loop's window have begun."""
        opened = self.schedule.run.opened.get(loop)
        return opened is not None and opened.began >= len(opened.items or ())

    def _other(self, step_id: str) -> str:
        """Why a call that may be made is none of `only`."""
        known = self.only is None or (step_id, self.schedule.run.steps[step_id].calls + 1) in self.only
        return "" if known else "the segment has not come to it"

    def skip(self, step_id: str, reason: str, now: datetime, opens: bool, code: str | None) -> None:
        """Settle a step that is skipped."""
        result = Result(ok=False, error=reason, code=code, timestamp=now)
        self.schedule.settle(step_id, Outcome(Status.SKIPPED, result, opens), now)

    def _make(self, step: Step, call: actions.Call, now: datetime) -> Made:
        run, state = self.schedule.run, self.schedule.run.steps[step.id]
        self.schedule.start(step.id, now)
        state.calls += 1
        note_call(run, step, call.filled.args)
        self.in_flight[step.id] = None
        self.made += 1
        name = call_name(step.id, state.calls)
        return Made(step, state.calls, name, call.filled, call.values, call.call, digest_of(call.call))

    def proceed(self, now: datetime) -> None:
        """Go further in the containers in which everything has ended."""
        while (step_id := self.schedule.next_ended()) is not None:
            if step_id in self.partial:
                self.at_edge = True
                continue
            match self.schedule.next_move(step_id, now):
                case Settle(outcome):
                    self.schedule.settle(step_id, outcome, now)
                case Further(_, delay) if delay:
                    self.left[step_id] = "it waits for its next round"
                case Further(opened, _):
                    self.schedule.open(step_id, opened, now)


_LEFT: dict[type[actions.NextAction], str] = {
    actions.Ask: "it needs approval",
    actions.Begin: "it waits for a person, an event, an agent or another plan",
    actions.List: "its items are in a value outside history",
    actions.Sleep: "it waits",
}

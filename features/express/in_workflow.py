"""Segments in a workflow: quick steps that are ready stay so, one activity runs them and what follows, and the outcomes
are settled one by one, as the steps would be started and end without.

While a segment is in flight nothing else of the run changes: no turn begins, messages wait. So the workflow comes to
the calls that the activity made, each with the same digest. If it does not, a worker with other code has decided
otherwise: the log says SEGMENT_DIFFERS, and the run continues without segments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from plansurvive.features.express.carrying import Unlisted, carried
from plansurvive.features.express.joining import bounds_of, reason_against
from plansurvive.features.express.model import (
    SETTLED,
    TOGETHER,
    CallEnd,
    ExpressState,
    Failed,
    SegmentEnd,
    SegmentOrder,
    segment_id,
)
from plansurvive.features.express.reach import reach
from plansurvive.features.express.segment import Made, Segment
from plansurvive.plans.execution.next_action import Call
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import DEFAULT_PARALLEL, Retry, Step
from plansurvive.plans.run import DONE
from plansurvive.workflows import policies
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.in_steps import InSteps
from plansurvive.workflows.outcomes import skipped
from plansurvive.workflows.payloads import of_json
from plansurvive.workflows.place import Destination
from plansurvive.workflows.policies import Policy
from plansurvive.workflows.tool_call import session_of_workflow

UNAVAILABLE, DIFFERS = "EXPRESS_UNAVAILABLE", "SEGMENT_DIFFERS"
MOVED = "segments that ended where the files no longer are"
"""Patch: as of 1.0.0, the calls of these differed."""
SEGMENT = Policy(30.0, Retry(attempts=3, delay=1.0))
"""segment: it begins nothing after its seconds, and its calls have a time limit of their own."""


class Segments(InSteps):
    """The segments of one run; one at a time."""

    def __init__(self, execution: Execution) -> None:
        self.execution, self.run, self.schedule = execution, execution.run, execution.schedule
        self._gathered = dict[str, None]()
        self._names = list[str]()
        self._parallel = 1
        self._unlisted = Unlisted()
        self._flying: asyncio.Future[Any] | None = None
        self._began = datetime.min.replace(tzinfo=UTC)
        self._workspace = ""
        """Where the segment in flight finds the plan's files."""

    def postpones(self, step: Step, call: Call) -> bool:
        """Gather it for a segment, if it may be in one."""
        run = self.run
        if run.closing is not None or run.stopped or reason_against(run, step, call):
            return False
        state = run.part(ExpressState)
        if state.off or step.id in state.barred:
            return False
        self._gathered[step.id] = None
        return True

    @property
    def holds(self) -> bool:
        """Whether a segment is in flight, or has not been settled."""
        return self._flying is not None

    @property
    def is_released(self) -> bool:
        """Whether it has ended."""
        return self._flying is not None and self._flying.done()

    @property
    def in_flight(self) -> list[str]:
        """The steps that a segment was begun with."""
        return self._names if self.holds else []

    def begin(self) -> None:
        """Begin a segment with what was gathered in the turn."""
        gathered, self._gathered = self._gathered, {}
        ready = [name for name in gathered if name in self.schedule.ready]
        if not ready or self.holds:
            return
        run, state = self.run, self.run.part(ExpressState)
        bounds = bounds_of(run, ready[0])
        within = reach(self.schedule, [*ready, *self.schedule.ready], bounds.steps) if bounds else []
        if bounds is None or not within:
            self._end(UNAVAILABLE, "no segment can be made here")
            return
        state.segments += 1
        limit = run.options.max_parallel or run.plan.max_parallel or DEFAULT_PARALLEL
        self._names, self._parallel = ready, max(1, limit - self.schedule.running)
        state.barred = [name for name in state.barred if name in run.steps and run.steps[name].status not in DONE]
        step, number, barred = self.schedule.step(ready[0]), state.segments, list(state.barred)
        summary = f"{len(within)} steps: {', '.join(within[:20])}"[:200]

        def start(to: Destination) -> workflow.ActivityHandle[RawValue]:
            # What goes along says where the files are, and where a host is lost, this is called again for the next one.
            self._workspace = run.facts.workspace
            goes = carried(self.schedule, within, bounds.steps, self._unlisted)
            order = SegmentOrder(
                number=number, seconds=bounds.seconds, steps=bounds.steps, parallel=self._parallel,
                barred=barred, session=session_of_workflow(), partial=goes.partial, unseen=goes.unseen,
            )  # fmt: skip
            return workflow.start_activity(
                "segment",
                of_json(f'{order.model_dump_json()[:-1]},"run":{goes.run}}}'),
                result_type=RawValue,
                task_queue=to.queue,
                activity_id=segment_id(number),
                summary=summary,
                start_to_close_timeout=SEGMENT.start_to_close,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
                schedule_to_start_timeout=to.patience,
                retry_policy=_RETRY,
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )

        self._began = workflow.now()
        self._flying = self.execution.place.call(step, SEGMENT, start)

    def settle(self) -> None:
        """Settle the outcomes of a segment that has ended."""
        self._gathered = {}
        if self._flying is None or not self._flying.done():
            return
        handle, names, self._flying, self._names = self._flying, self._names, None, []
        error = None if handle.cancelled() else handle.exception()
        if handle.cancelled() or (error is not None and is_cancelled_exception(error)):
            return  # no worker had begun it
        if self._workspace != self.run.facts.workspace and workflow.patched(MOVED):
            text = "the plan's files have moved: steps that ended where they were are run again"
            self.run.note(LogKind.WARNING, text, workflow.now())
            return
        if error is not None:
            cause = error.cause if isinstance(error, ActivityError) else error
            self._end(UNAVAILABLE, f"its workers cannot run several steps in one activity: {cause}"[:500])
            return
        try:
            answer: RawValue | None = handle.result()  # parsed once, as what it is
            end = SegmentEnd.model_validate_json(b"" if answer is None else answer.payload.data)
        except ValidationError as damaged:
            self._end(UNAVAILABLE, f"what a segment has answered cannot be read: {damaged}"[:500])
            return
        if end.unusable:
            self._end(UNAVAILABLE, end.unusable)
        elif not end.calls:  # it would be asked for over and over
            self.run.part(ExpressState).barred += names
        is_together = answer is not None and answer.payload.metadata.get(SETTLED) == TOGETHER
        self._settle_all(end.calls, is_together)

    async def finish(self) -> None:
        """Have a segment begin no further step, and wait for its outcomes."""
        if self._flying is not None:
            self._flying.cancel()
            await workflow.wait_condition(lambda: self.is_released)
            self.settle()

    def _settle_all(self, calls: Sequence[CallEnd], is_together: bool) -> None:
        made, at, now = dict[str, Made](), self._began, workflow.now()
        barred = frozenset(self.run.part(ExpressState).barred)
        known = {(each.step_id, each.number): _time(each.began, at, now) for each in calls}
        settling = _Settling(self.schedule, at, parallel=self._parallel, barred=barred, only=known)
        settling.execution, settling.began_at = self.execution, known
        # What the worker has settled together has one time; each alone, it would be asked each time what begins next.
        for _, ends in groupby(calls, (lambda end: end.ended) if is_together else id):
            for each in settling.begin(at):
                made[each.step.id] = each
            for end in ends:
                call = made.pop(end.step_id, None)
                if call is None or (call.number, call.digest) != (end.number, end.digest):
                    self._differs(end, call, made)
                    return
                at = _time(end.ended, at, now)
                self._take(settling, call, end, at)
        settling.proceed(at)

    def _take(self, settling: Segment, call: Made, end: CallEnd, now: datetime) -> None:
        """Settle the call that has ended as the workflow would make it."""
        name = end.step_id
        if end.returned is not None:
            settling.completed(name, end.returned, 0, now)
        elif end.failed is not None and end.failed.attempt.delay is None:
            settling.failed(name)
            ended = asyncio.get_running_loop().create_future()
            ended.set_exception(_failure(end.failed))
            self.execution.watch(name, ended)
        else:
            if end.failed is not None:
                settling.failed(name)
            else:
                settling.leave(name, end.left)
            self.run.part(ExpressState).barred.append(name)
            self._alone(call, end.failed)

    def _alone(self, call: Made, failed: Failed | None = None) -> None:
        """Make the call as an activity, after the attempt that has failed in the segment."""
        self.run.steps[call.step.id].calls -= 1  # it is the same call
        if failed is None:
            self.execution.watch(call.step.id, self.execution.started(call.step, call.filled, call.values))
        else:
            self.execution.watch(call.step.id, asyncio.create_task(self._later(call, failed)))

    async def _later(self, call: Made, failed: Failed) -> Any:
        await workflow.sleep(max(failed.attempt.delay or 0.0, 0.001), summary=f"retry {call.step.id}"[:200])
        return await self.execution.started(call.step, call.filled, call.values, [failed.attempt])

    def _differs(self, end: CallEnd, call: Made | None, begun: dict[str, Made]) -> None:
        """What was run is not what would be: its effects stay, and the workflow makes its own calls."""
        self._end(DIFFERS, f"a worker has called step '{end.step_id}' as this plan does not; did its code change?")
        for each in [*([call] if call is not None else ()), *begun.values()]:
            self._alone(each)

    def _end(self, code: str, why: str) -> None:
        self.run.part(ExpressState).off = code
        self.run.note(LogKind.WARNING, f"{code}: {why}; each step runs in its own activity", workflow.now(), code=code)
        self.execution.wake()


class _Settling(Segment):
    """A segment that has ended, on the run itself."""

    execution: Execution
    began_at: Mapping[tuple[str, int], datetime]

    def is_over(self, now: datetime) -> bool:  # noqa: ARG002
        """Only after a failure: what was made within the bounds was made so."""
        return self.has_failed

    def is_full(self) -> bool:
        """Never: what was made side by side was made so."""
        return False

    def proceed(self, now: datetime) -> None:
        """Containers go further as without segments: some wait for their next round."""
        self.execution.proceed(now)

    def _make(self, step: Step, call: Call, now: datetime) -> Made:
        return super()._make(step, call, self.began_at.get((step.id, self.schedule.run.steps[step.id].calls + 1), now))

    def skip(self, step_id: str, reason: str, now: datetime, opens: bool, code: str | None) -> None:
        """Settle a step that is skipped."""
        self.execution.conclude(step_id, skipped(reason, now, opens, code))


# From the journal each attempt goes further than the one before, so deaths of workers make none wait longer.
_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=1.0, maximum_attempts=policies.WORKER_DEATHS,
    non_retryable_error_types=["NotFoundError"],
)  # fmt: skip


def _time(said: datetime | None, earliest: datetime, now: datetime) -> datetime:
    """A time by a worker's clock, within those of the workflow."""
    return now if said is None else min(max(said, earliest), now)


def _failure(failed: Failed) -> ApplicationError:
    """As the activity of the tool fails."""
    return ApplicationError(failed.error, failed.details, type=failed.attempt.code, non_retryable=True)


class Express(InRun):
    """Segments of a plan."""

    feature = "express"
    of_agents = False

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self._segments = Segments(execution)

    def in_steps(self) -> Sequence[InSteps]:
        """Segments."""
        return (self._segments,)

    async def turned(self) -> bool:
        """Begin a segment, once no other feature has anything to do before the plan waits."""
        self._segments.begin()
        return False


IN_RUN, WORKFLOWS = Express, ()

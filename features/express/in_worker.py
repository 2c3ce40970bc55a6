"""The activity `segment` of a worker: makes the calls of a segment with the worker's tools, kept in its journal."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from temporalio import activity
from temporalio.common import RawValue

from plansurvive.activities.attempt.cancellation import cancelled_once
from plansurvive.activities.attempt.heartbeat import BEAT_SECONDS, ERROR_BYTES
from plansurvive.activities.attempt.inner import INNER
from plansurvive.activities.beating import beating
from plansurvive.activities.feature import InWorker, ToolCalls, Waits
from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.features.express.carrying import Unseen
from plansurvive.features.express.journal import FOLDER, Journal
from plansurvive.features.express.journal import Segment as SegmentId
from plansurvive.features.express.model import (
    SETTLED,
    TOGETHER,
    ExpressFact,
    ExpressNote,
    Failed,
    SegmentEnd,
    SegmentRequest,
    segment_id,
)
from plansurvive.features.express.running import Left, Running
from plansurvive.features.express.segment import Bounds, Made, Segment
from plansurvive.features.express.settings import ExpressSettings
from plansurvive.plans.activity_io import Attempt, CheckRequest, Return
from plansurvive.plans.execution.calling import Terms, call_for, terms_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Retry
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run.feature import Rules, RuleSet
from plansurvive.runtime.conversion.payloads import json_payload
from plansurvive.runtime.errors import KeyMissing
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.sealing import Sealing

LONGEST = 5.0
"""Seconds that a call may take in a segment; what needs longer is made as an activity."""


@dataclass
class Journals:
    """The journal of a state directory, opened with the first segment."""

    directory: Path
    sealing: Sealing
    _open: Journal | None = field(default=None, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def open(self) -> Journal:
        """The journal. Raises OSError or sqlite3.Error if it cannot be used."""
        async with self._opening:
            if self._open is None:
                self._open = await asyncio.to_thread(Journal, self.directory, self.sealing)
            return self._open

    def close(self) -> None:
        """Open it again for the next segment."""
        journal, self._open = self._open, None
        if journal is not None:
            journal.close()


@dataclass(frozen=True)
class Segments:
    """What a worker runs segments with."""

    calls: ToolCalls
    journals: Journals
    rules: Sequence[Rules]

    @activity.defn(name="segment")
    async def segment(self, request: SegmentRequest) -> SegmentEnd | RawValue:
        """Run a segment: several quick steps of a plan. A cancellation ends it with what has been run until then."""
        async with beating(BEAT_SECONDS):
            try:
                journal = await self.journals.open()
            except (OSError, sqlite3.Error) as error:
                return SegmentEnd(unusable=f"the journal of this worker cannot be used: {error}"[:500])
            answer = json_payload((await cancelled_once(self._run(request, journal))).encode())
            answer.metadata[SETTLED] = TOGETHER
            return RawValue(answer)

    async def _run(self, request: SegmentRequest, journal: Journal) -> str:
        info = activity.info()
        schedule = Schedule(request.run)
        # Those of the worker that the run was begun with, as its workflow asks them.
        schedule.rules = RuleSet([each for each in self.rules if each.name in request.run.facts.features])
        now = datetime.now(UTC)
        bounds = Bounds(request.seconds, request.steps)
        segment = Segment(
            schedule, now, bounds, request.parallel, frozenset(request.barred),
            partial=request.partial, unseen=Unseen(request.unseen),
        )  # fmt: skip
        calls = _Calls(self.calls, segment, request, ExpressNote(segment=request.number), again=info.attempt > 1)
        name = SegmentId(info.workflow_run_id or "", info.activity_id)
        settled = [segment_id(request.number - 1)]
        running = Running(segment, calls.make, lambda: datetime.now(UTC), journal, name, info.attempt, settled)
        try:
            return await _unless_stopped(asyncio.ensure_future(running.end()), segment)
        except (OSError, sqlite3.Error):
            self.journals.close()
            raise
        finally:
            # What remains of it is in cycles, with the run: some MB a segment, until the next garbage collection.
            vars(schedule).clear()


async def _unless_stopped(work: asyncio.Task[str], segment: Segment) -> str:
    """The end of the work. A cancelled plan gets what has been run: no further call begins."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or not details.cancel_requested:  # the worker stops: another one attempts it again
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise
        segment.stop()
        return await work


@dataclass(frozen=True)
class _Calls:
    """The calls of one attempt of a segment."""

    calls: ToolCalls
    segment: Segment
    request: SegmentRequest
    note: ExpressNote
    again: bool

    async def make(self, made: Made) -> Return | Failed | Left:
        """Make a call, observed as an activity of its own is. Raises CancelledError."""
        with INNER.get()(made.step.tool, made.name, made.step.id) as told:
            found = await self._make(made)
            if isinstance(found, Return):
                told("completed", "")
            elif isinstance(found, Failed):
                told("failed" if found.attempt.delay is None else "again", found.attempt.code or "")
            return found

    async def _make(self, made: Made) -> Return | Failed | Left:
        run, step = self.segment.schedule.run, made.step
        tool = self.calls.tools.get(step.tool)
        if tool is None:
            return Left(f"{step.tool} is not a tool of this worker's own")
        terms = terms_of(run.plan, step, run.facts.tools[step.tool], made.filled.args)
        limit = min(terms.timeout, LONGEST)
        terms_here, session = Terms(limit, terms.retry, terms.repeatable), self.request.session
        call = call_for(run, step, made.filled, made.values, terms_here, session, made=made.call)
        call = self.segment.schedule.rules.extended(run, step, call)
        began, started = datetime.now(UTC), time.monotonic()
        context = self.calls.begun(tool, call, again=self.again, began=began)
        try:
            returned = await self.calls.made(tool, context, 1)
            returned.parts[ExpressNote.feature] = self.note
            return returned
        except (Waits, KeyMissing) as wait:
            return Left(wait.message)
        except Exception as error:
            duration = round((time.monotonic() - started) * 1_000, 3)
            failure, details = self.calls.failed(error, context, duration)
            if failure.code == "APPROVAL_REQUIRED" or (failure.code == "STEP_TIMEOUT" and limit < terms.timeout):
                return Left(failure.message)
            is_final = not failure.retryable or terms.retry.attempts <= 1
            wait_for = terms.retry.delay if failure.retry_after is None else failure.retry_after
            attempt = Attempt(
                number=1, began=began, duration=duration, code=failure.code,
                error=bounded(one_line(failure.message), ERROR_BYTES), delay=None if is_final else wait_for,
            )  # fmt: skip
            if is_final:
                self.calls.ended(context)
            return Failed(error=failure.message, attempt=attempt, details=_details(details, attempt, terms.retry))
        finally:
            context.cancel()


def _details(left: dict[str, object], attempt: Attempt, retry: Retry) -> dict[str, object]:
    """What the last attempt of an activity tells its workflow."""
    record = attempt.model_dump(mode="json", exclude_defaults=True)
    return {"code": attempt.code, "attempt": 1, **left, "of": retry.attempts, "attempts": [record]}


class Worker(InWorker):
    """The segments of a worker's settings."""

    feature = "express"

    def activities_with(self, calls: ToolCalls) -> Sequence[Callable[..., object]]:
        """`segment`."""
        journals = Journals(self.settings.state_dir / FOLDER, sealing_of(self.settings))
        return [Segments(calls, journals, self.others.rules).segment]

    def facts(self, _: CheckRequest) -> Part | None:
        """Whether the quick steps of plans that say nothing run in segments."""
        return ExpressFact(on=True) if self.settings.of(ExpressSettings).express == "on" else None


IN_WORKER = Worker

"""Runs a segment in a worker: makes its calls side by side, and keeps each outcome before anything follows from it.

What an earlier attempt of the segment has kept is taken from the journal: the call is not made again, if it is still
the same call. A failure is not kept, and so the call is attempted again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from plansurvive.features.express.journal import Journal, when_free
from plansurvive.features.express.journal import Segment as SegmentId
from plansurvive.features.express.model import CallEnd, Failed
from plansurvive.features.express.segment import Made, Segment
from plansurvive.plans.activity_io import Return
from plansurvive.plans.run.step_call import digest_of_data

Make = Callable[[Made], Coroutine[Any, Any, "Return | Failed | Left"]]
"""Makes one attempt of a call. What it raises ends the attempt of the segment."""


class Left(NamedTuple):
    """The call is not made here."""

    why: str


class Begun(NamedTuple):
    """A call in flight."""

    made: Made
    at: datetime


@dataclass
class Running:
    """One attempt of a segment, with the journal of the worker's state directory."""

    segment: Segment
    make: Make
    clock: Callable[[], datetime]
    journal: Journal
    id: SegmentId
    attempt: int
    settled: Sequence[str] = ()
    """Activity ids of segments whose outcomes the plan's history has: the journal need not keep them."""
    known: Mapping[str, str] = field(default_factory=dict)
    """What earlier attempts have kept, by the name of the call."""
    calls: list[str] = field(default_factory=list)
    """How they ended, a `CallEnd` as JSON each: what is kept is what is sent."""

    async def end(self) -> str:
        """Run the segment to its end: the SegmentEnd as JSON.

        Raises Superseded if another attempt has begun, and what the journal raises; calls in flight are cancelled then.
        """
        self.known = await when_free(lambda: self.journal.begin(self.id, self.attempt, self.settled))
        in_flight = dict[asyncio.Task[Return | Failed | Left], Begun]()
        try:
            while self._begin(in_flight):
                await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                await self._take([(in_flight.pop(task), task) for task in list(in_flight) if task.done()])
        finally:
            for task in in_flight:
                task.cancel()
            await asyncio.gather(*in_flight, return_exceptions=True)
        return f'{{"calls":[{",".join(self.calls)}]}}'

    def _begin(self, in_flight: dict[asyncio.Task[Return | Failed | Left], Begun]) -> bool:
        """Begin what can begin now. Whether anything is in flight."""
        while begun := self.segment.begin(now := self.clock()):
            ended = len(self.calls)
            for made in begun:
                if (end := self._kept(made)) is not None:
                    self._settle(end, self.known[made.name], now)
                else:
                    in_flight[asyncio.create_task(self.make(made))] = Begun(made, now)
            if len(self.calls) == ended:
                break
        return bool(in_flight)

    def _kept(self, made: Made) -> CallEnd | None:
        """How the call ended in an earlier attempt, if that is known."""
        if (text := self.known.get(made.name)) is None:
            return None
        try:
            end = CallEnd.model_validate_json(text)
        except ValidationError:
            return None
        return end if end.digest == made.digest else None

    async def _take(self, done: Sequence[tuple[Begun, asyncio.Task[Return | Failed | Left]]]) -> None:
        """Take the ends of calls. What they gave is kept first, all of it at once: the disk is waited for once."""
        ends, texts, now = dict[str, CallEnd](), dict[str, str](), self.clock()
        for begun, task in done:
            is_whole = not task.cancelled() and task.exception() is None
            if is_whole and isinstance(returned := task.result(), Return):
                name = begun.made.name
                ends[name] = end = _end(begun, now, returned=returned)
                texts[name] = _text(end)
        await when_free(lambda: self.journal.keep(self.id, self.attempt, texts))
        for begun, task in done:
            made = begun.made
            match task.result():
                case Left(why):
                    self.segment.leave(made.step.id, why)
                    self.calls.append(_text(_end(begun, now, left=why)))
                case Failed() as failed:
                    self.segment.failed(made.step.id)
                    self.calls.append(_text(_end(begun, now, failed=failed)))
                case Return():
                    self._settle(ends[made.name], texts[made.name], now)

    def _settle(self, end: CallEnd, text: str, now: datetime) -> None:
        self.calls.append(text)
        if end.returned is not None:
            self.segment.completed(end.step_id, end.returned, len(text), now)


def _end(begun: Begun, now: datetime, **how: Any) -> CallEnd:
    made, args = begun.made, digest_of_data(begun.made.filled.args)
    return CallEnd(
        step_id=made.step.id, number=made.number, digest=made.digest, tool=made.step.tool, args=args,
        began=begun.at, ended=now, **how,
    )  # fmt: skip


def _text(end: CallEnd) -> str:
    return end.model_dump_json(exclude_defaults=True)

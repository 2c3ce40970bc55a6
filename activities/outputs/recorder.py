"""Records what a command writes while it runs: the whole of it goes to the value store, and no more than a few MiB are
in memory at a time: the command waits while the store is behind.

    async with outputs.recorder(context) as recorder:
        ...                                # the command writes: recorder.add(STDOUT, data)
        value = await recorder.text(STDOUT)

Short output is not stored at once: a value of up to TEXT_BYTES is an ordinary text. Whoever follows the command gets
what is new about every second, from `context.logs`: by reference, or inline as long as it is little.

Rejected: a file beside the worker (no other machine reads it), one object per attempt (S3 cannot append), Temporal's
history (no room).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from plansurvive.activities.outputs.transcript import CHUNK_BYTES, NUMBERS, Number, Transcript, shortened, unfinished
from plansurvive.activities.values.redaction import Secrets
from plansurvive.plans.activity_io import STDERR, STDOUT, Logs, Turns
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.value_store import Stream, ValueStore

ROOM_BYTES = 4 * CHUNK_BYTES
"""Bytes not yet stored from which on the command has to wait."""
TEXT_BYTES = 256 * 1024
"""Output of at most this many bytes, both streams together, is a text in the step's value; more is a stream."""
LIVE_SECONDS = 1.0
"""Seconds between two looks at what is new."""
LIVE_BYTES = 8 * 1024
"""While the command runs, what is not stored yet goes inline into the heartbeat up to this many bytes."""
END_BYTES = 1024
"""The same for what is recorded when it has ended, in the plan's history."""
TURNS_IN_HISTORY = 64
TAIL_BYTES = 8 * 1024
"""Bytes of the end of each stream for error messages."""
SECONDS_TO_SAVE = 10.0
"""Seconds to store what is left of a command that was cancelled."""
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Outputs:
    """Where the output of commands goes, and what is masked in it."""

    store: ValueStore
    secrets: Secrets
    limit: int
    """Maximum bytes of stdout and stderr together, per attempt."""


class Recorder:
    """Records the output of one command.

    `said` is called with the last line of new output, `logged` with each new state of what can be read.
    """

    def __init__(
        self, outputs: Outputs, said: Callable[[str], None], logged: Callable[[Logs], None], *, is_value: bool = True
    ) -> None:
        """`is_value`: output that is short is in the step's value, and recorded there alone."""
        self._is_value = is_value
        self.over = asyncio.Event()
        """The command is to be killed: its output is over the limit or cannot be stored (`check`)."""
        self.on_room: Callable[[], None] = lambda: None
        """Called when output is taken again after `add` returned False."""
        self._outputs, self._said, self._logged = outputs, said, logged
        self._transcript = Transcript(outputs.store)
        self._masks = {number: outputs.secrets.out_of_stream() for number in NUMBERS}
        self._new = {number: bytearray() for number in NUMBERS}
        self._turns: Turns = []
        self._short: dict[Number, bytearray] | None = {number: bytearray() for number in NUMBERS}
        self._short_turns: Turns = []
        self._tails = {number: bytearray() for number in NUMBERS}
        self._received = 0
        self._problem: Exception | None = None
        self._full, self._changed, self._stopping = asyncio.Event(), False, False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._store_while_it_runs())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record the rest for `plan logs`. How the command ended matters more than an error here: none is raised."""
        try:
            async with asyncio.timeout(SECONDS_TO_SAVE if isinstance(error, asyncio.CancelledError) else None):
                await self._finish(is_value=self._is_value and error is None)
        except Exception:  # whatever a storage driver raises; `texts` and `check` raise it where it matters
            self._logged(self._state(END_BYTES).model_copy(update={"cut": True}))

    def add(self, number: Number, data: bytes) -> bool:
        """Take output. False: the command must wait until `on_room` is called."""
        if self.over.is_set():
            return True  # it is being killed; what it still writes is dropped
        room = self._outputs.limit - self._received
        self._received += len(data)
        self._keep(number, self._masks[number].add(data[:room]))
        self._said(self._last_line(number))
        if len(data) > room:
            megabytes = f"{self._outputs.limit / MEBIBYTE:g} MB"
            self._problem = ToolError(
                "OUTPUT_LIMIT",
                f"the command wrote more than {megabytes} to stdout and stderr and was killed; write the data to a file"
                " instead, print less, or raise PLANS_OUTPUT_MB of the worker",
            )
            self.over.set()
        if self._waiting >= CHUNK_BYTES:
            self._full.set()
        return self._waiting < ROOM_BYTES or self.over.is_set()

    def tail(self, number: Number) -> str:
        """The end of a stream as text."""
        return bytes(self._tails[number]).decode("utf-8", "replace").lstrip("\ufffd")

    def check(self) -> None:
        """Raise why `over` was set: ToolError OUTPUT_LIMIT, or what the storage raised."""
        if self._problem is not None:
            raise self._problem

    async def texts(self) -> tuple[str | Stream, str | Stream]:
        """All of stdout and stderr, for the step's value. Raises what `check` raises."""
        await self._stop()
        self.check()
        self._release()
        short = self._decoded()
        if short is not None:
            return short
        await self._store(is_end=True)
        return self._text_or_stream(STDOUT), self._text_or_stream(STDERR)

    def _text_or_stream(self, number: Number) -> str | Stream:
        if self._transcript.stored[number] <= TAIL_BYTES:
            with suppress(UnicodeDecodeError):
                return self._tails[number].decode()
        return self._transcript.stream(number)

    @property
    def _waiting(self) -> int:
        return sum(map(len, self._new.values()))

    def _keep(self, number: Number, data: bytes) -> None:
        if not data:
            return
        self._changed = True
        self._new[number] += data
        self._tails[number] = (self._tails[number] + data)[-TAIL_BYTES:]
        _count(self._turns, number, len(data))
        if self._short is not None:
            self._short[number] += data
            _count(self._short_turns, number, len(data))
            if sum(map(len, self._short.values())) > TEXT_BYTES:
                self._short = None

    def _last_line(self, number: Number) -> str:
        """The last non-empty line so far, possibly partial."""
        recent = bytes(self._tails[number][-1_000:]).decode("utf-8", "replace").rstrip()
        return recent.rpartition("\n")[2].rpartition("\r")[2]

    def _release(self) -> None:
        for number in NUMBERS:
            self._keep(number, self._masks[number].rest())

    def _decoded(self) -> tuple[str, str] | None:
        """The whole output as texts if it is short, valid UTF-8."""
        if self._short is None:
            return None
        try:
            return self._short[STDOUT].decode(), self._short[STDERR].decode()
        except UnicodeDecodeError:
            return None

    async def _store_while_it_runs(self) -> None:
        try:
            while not self._stopping:
                try:
                    async with asyncio.timeout(LIVE_SECONDS):
                        await self._full.wait()
                except TimeoutError:
                    pass
                self._full.clear()
                if self._waiting > LIVE_BYTES:
                    await self._store()
                if self._changed:
                    self._changed = False
                    self._logged(self._state(LIVE_BYTES))
        except Exception as error:  # whatever a storage driver raises: no more output is taken, so the command ends
            self._problem = error
            self.over.set()
        finally:
            self.on_room()

    async def _store(self, *, is_end: bool = False) -> None:
        """Store what is new, except the beginning of a character unless `is_end`."""
        held = {number: 0 if is_end else unfinished(self._new[number]) for number in NUMBERS}
        data = {number: bytes(self._new[number][: len(self._new[number]) - held[number]]) for number in NUMBERS}
        turns, self._turns = self._turns, [(number, held[number]) for number in NUMBERS if held[number]]
        self._new = {number: self._new[number][len(data[number]) :] for number in NUMBERS}
        self.on_room()
        if any(data.values()):
            await self._transcript.add(data, _without(turns, held))

    async def _stop(self) -> None:
        """Wait until what is being stored has been stored."""
        self._stopping = True
        self._full.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _finish(self, *, is_value: bool) -> None:
        await self._stop()
        self._release()
        if not self._received:
            return
        if is_value and self._short is not None and self._decoded() is not None and not self._transcript.claim:
            out, err = (len(self._short[number]) for number in NUMBERS)
            self._logged(Logs(stdout=out, stderr=err, of_value=shortened(self._short_turns, TURNS_IN_HISTORY)))
            return
        # Any other problem is the storage's: it is away, and not tried again.
        is_stored = self._problem is None or isinstance(self._problem, ToolError)
        if is_stored and (self._transcript.claim or self._waiting > END_BYTES):
            await self._store(is_end=True)
        self._logged(self._state(END_BYTES).model_copy(update={"cut": self._problem is not None}))

    def _state(self, inline: int) -> Logs:
        """What can be read now, with at most `inline` bytes that are not stored."""
        index, out, err = self._transcript.claim, *self._transcript.stored.values()
        if not 0 < self._waiting <= inline:
            return Logs(index=index, stdout=out, stderr=err)
        end, new = [], dict(self._new)
        for number, length in shortened(self._turns, TURNS_IN_HISTORY):
            end.append((number, base64.b64encode(new[number][:length]).decode()))
            new[number] = new[number][length:]
        out, err = out + len(self._new[STDOUT]), err + len(self._new[STDERR])
        return Logs(index=index, stdout=out, stderr=err, end=end)


def _count(turns: Turns, number: Number, length: int) -> None:
    if turns and turns[-1][0] == number:
        turns[-1] = (number, turns[-1][1] + length)
    else:
        turns.append((number, length))


def _without(turns: Turns, held: dict[Number, int]) -> Turns:
    """The turns without the last bytes of each stream."""
    left, kept = dict(held), Turns()
    for number, length in reversed(turns):
        taken = min(left[number], length)
        left[number] -= taken
        if length > taken:
            kept.append((number, length - taken))
    return kept[::-1]

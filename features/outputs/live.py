"""The output of commands, followed once for all who look at it: numbered pieces of text, the newest of them kept."""

from __future__ import annotations

import asyncio
import html
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import islice

from temporalio.client import Client

from plansurvive.activities.outputs.stored_output import Number
from plansurvive.client.watchers.stream import message
from plansurvive.features.outputs.feed import Began, Event, LeftOut, Wrote, feed
from plansurvive.plans.activity_io import STDERR
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.text.traces import folded
from plansurvive.plans.views.models.live import numbered
from plansurvive.runtime.value_store import ValueStore

MOST_PIECES, MOST_CHARACTERS = 2_000, 1_000_000
"""What is kept for those who come later; `plan logs` has all of it."""
_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")
"""Colours and cursor movements of terminals: a page shows neither."""
KEEP, EVERY = 15.0, 0.25


class Output:
    """The output of a plan, or of one step of it."""

    def __init__(self, client: Client, store: ValueStore, plan: str, step: str) -> None:
        self._pieces: deque[tuple[int, str]] = deque()
        self._size = self.number = 0
        """`number`: that of the newest piece."""
        self.has_ended = False
        self._last: tuple[object, ...] | None = None
        self._viewers, self._used = 0, time.monotonic()
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._follow(client, store, plan, step))

    @property
    def is_idle(self) -> bool:
        """Whether nobody has looked for a while."""
        return not self._viewers and time.monotonic() > self._used + KEEP

    async def stop(self) -> None:
        """End its task."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def messages(self, since: int) -> AsyncIterator[str]:
        """What comes after piece `since`, for one viewer, until the plan has ended."""
        self._viewers += 1
        try:
            while True:
                ended, found = self.has_ended, [each for each in self._pieces if each[0] > since]
                if found and found[0][0] > since + 1 and since:
                    found.insert(0, (since, "<p class='dim'>… output in between is not kept here: plan logs</p>"))
                for start in range(0, len(found), 100):
                    texts = islice(found, start, start + 100)
                    yield _appended("".join(text for _, text in texts), found[min(start + 99, len(found) - 1)][0])
                since = found[-1][0] if found else since
                if ended:
                    yield message("", event="ended")
                    return
                await asyncio.sleep(EVERY)
                if self.number <= since and not self.has_ended:
                    news = self._news
                    with suppress(TimeoutError):
                        async with asyncio.timeout(KEEP):
                            await news.wait()
                    if self.number <= since:
                        yield ": nothing new\n\n"
        finally:
            self._viewers -= 1
            self._used = time.monotonic()

    async def _follow(self, client: Client, store: ValueStore, plan: str, step: str) -> None:
        try:
            async for event in feed(client, store, plan, step, follow=True, say=self._say):
                if not isinstance(event, LeftOut) and (text := self._html(event)):
                    self._add(text)
        except PlanError as error:
            self._add(f"<p class='notice bad'>{html.escape(safe(error.message))}</p>")
        self.has_ended = True
        self._tell()

    def _html(self, event: Event) -> str:
        """A piece of output as HTML, with a heading where another step goes on; every text in it is escaped."""
        shown = event.of
        name, attempt = html.escape(line(shown.label)), shown.attempt
        again = f", attempt {attempt.number}" if attempt.number > 1 else ""
        head = f"<h3><code>{name}</code>{again}</h3>" if self._last != shown.key else ""
        self._last = shown.key
        if isinstance(event, Began):
            return head
        if isinstance(event, Wrote):
            return head + _text(event.data, event.stream)
        failed = f"{numbered(attempt.number, shown.of)} failed: {attempt.code} {folded(attempt.error)}"
        why = event.problem or (failed if attempt.code else "")
        return head + f"<p class='notice bad'>{html.escape(line(why))}</p>" if why else ""

    def _say(self, text: str) -> None:
        self._add(f"<p class='notice warn'>{html.escape(line(text))}</p>")

    def _add(self, text: str) -> None:
        self.number += 1
        self._pieces.append((self.number, text))
        self._size += len(text)
        while len(self._pieces) > MOST_PIECES or (self._size > MOST_CHARACTERS and len(self._pieces) > 1):
            self._size -= len(self._pieces.popleft()[1])
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _appended(text: str, number: int) -> str:
    return message(f'<hx-partial hx-target="#output" hx-swap="beforeend">{text}</hx-partial>', number=str(number))


def _text(data: bytes, stream: Number) -> str:
    text = safe(_COLOURS.sub("", data.decode(errors="replace")).replace("\r\n", "\n"))
    kind = " stderr" if stream == STDERR else ""
    return f"<pre class='output{kind}'>{html.escape(text)}</pre>"

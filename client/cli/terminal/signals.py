"""Runs a command's coroutine so that SIGINT and SIGTERM end it in order: it is cancelled, cleans up, and returns.

A handler that raises would do so in whatever the event loop runs at that moment: half of the command would be left
where it was ("Task was destroyed but it is pending"), and the exception may be swallowed. Handlers that are not ours,
such as those of a program that embeds a command, and signals that are ignored, stay as they are.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

INTERRUPTED = 130
"""Exit code of a command that a signal ended."""
STOPPING = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


def interrupt(*_: Any) -> None:
    """Handler of SIGTERM, outside of event loops. Raises KeyboardInterrupt, as Ctrl-C does."""
    raise KeyboardInterrupt


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, with an event loop of its own. Raises KeyboardInterrupt if a signal ended it.

    The second signal does not wait for what the first one cancelled; the third ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)  # signals are the main thread's
    stop = _Stop()
    try:
        with stop.handling():
            return asyncio.run(stop.until_signal(work))
    except asyncio.CancelledError:
        if not stop.received:
            raise
        raise KeyboardInterrupt from None


class _Stop:
    """What the signals do while a command's coroutine runs."""

    def __init__(self) -> None:
        self.received = 0
        self._cancel: Callable[[], None] | None = None

    async def until_signal(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work. Raises CancelledError after a signal."""
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self.received:
            task.cancel()
        try:
            return await task
        finally:
            self._cancel = None

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Within it the signals that would raise cancel the work instead."""
        before = {number: signal.getsignal(number) for number in STOPPING}
        ours = [number for number, handler in before.items() if handler in (signal.default_int_handler, interrupt)]
        for number in ours:
            signal.signal(number, self._signalled)
        try:
            yield
        finally:
            for number in ours:  # what an event loop set is gone with it, and ours with that
                signal.signal(number, before[number])

    def _signalled(self, *_: Any) -> None:
        self.received += 1
        if self.received == 1:
            if self._cancel:
                self._cancel()
        elif self.received == 2:
            raise KeyboardInterrupt
        else:
            os._exit(INTERRUPTED)

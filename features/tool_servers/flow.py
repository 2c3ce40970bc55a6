"""Limits on what a server may send: floods end its connection instead of filling the worker's memory.

A message counts by its bytes, and notifications by their number: a server may report progress often, but not without
end. Budgets fill up again with time, so that a connection of days is as good as a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from plansurvive.plans.errors import ToolError

MESSAGES = 5_000
"""Messages that a server may send at once, beyond `PER_SECOND`."""
PER_SECOND = 500
"""Messages per second that a server may send for ever."""
OVERHEAD = 65_536
"""Bytes of a message beyond the result in it."""
NOT_SENT, GONE, TOO_MUCH = -32_097, -32_098, -32_099
"""Codes of errors that we put in place of an answer: the call did not reach the server, may have, or sent too much."""
BASE64 = 4 / 3
"""A picture takes this many times its bytes."""


def most_of_message(max_result: int) -> int:
    """Bytes of the longest message that may hold a result of this many bytes."""
    return int(max_result * BASE64) + OVERHEAD


class Flow:
    """Counts the messages of one connection. Raises MCP_LIMIT when there are too many."""

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._left, self._at = float(MESSAGES), clock()

    def add(self) -> None:
        """A message has arrived."""
        now = self._clock()
        self._left = min(float(MESSAGES), self._left + (now - self._at) * PER_SECOND) - 1
        self._at = now
        if self._left < 0:
            raise flooded(self._server, f"more than {MESSAGES:,} messages at once")


def flooded(server: str, what: str) -> ToolError:
    """The error of a server that sends too much."""
    return ToolError(
        "MCP_LIMIT", f"the tool server '{server}' sent {what}, so it was disconnected; ask it for less, or report it"
    )

"""The heartbeat of an activity that may be retried: counts errors across attempts and carries a progress line.

Details are `{"errors": N, "line": "..."}`. Workers of different versions read each other's details: fields may be added
but never renamed, and unreadable details count as no errors. This count, not Temporal's attempt number, decides when a
step has failed: the death of a worker must not use up an attempt (FAULTS, rule 3), so the workflow schedules these
activities with unlimited attempts and a heartbeat timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from plans.errors import ToolError
from plans.model import Retry

BEAT_SECONDS = 1.0


class Heartbeat:
    """The heartbeat of this attempt; `line` returns its progress, `errors` counts those of earlier attempts."""

    def __init__(self, line: Callable[[], str]) -> None:
        self.errors = errors_so_far(activity.info().heartbeat_details)
        self._line = line

    @contextmanager
    def beating(self, *, at_once: bool = False) -> Iterator[None]:
        """Heartbeat about every second until the block ends; `at_once`: also when it begins.

        Call `failure` after the block: a later heartbeat would overwrite its count with the old one.
        """
        task = asyncio.create_task(self._beat(at_once))
        try:
            yield
        finally:
            task.cancel()

    def is_final(self, error: ToolError, retry: Retry) -> bool:
        """Whether no further attempt follows this error."""
        return not error.retryable or self.errors + 1 >= retry.attempts

    def failure(
        self, error: ToolError, retry: Retry, message: str, details: Mapping[str, Any], longest_wait: float
    ) -> ApplicationError:
        """The error to raise to Temporal: says whether and when to retry. Counts it in the heartbeat.

        `longest_wait` limits the delay before the next attempt, in seconds.
        """
        failed, final = self.errors + 1, self.is_final(error, retry)
        if not final:
            activity.heartbeat({"errors": failed, "line": message[:200]})
        wait = error.retry_after if error.retry_after is not None else retry.delay * retry.factor**self.errors
        return ApplicationError(
            message,
            {"code": error.code, "attempt": failed, **details},
            type=error.code,
            non_retryable=final,
            next_retry_delay=None if final else timedelta(seconds=min(max(wait, 0.001), longest_wait)),
            category=ApplicationErrorCategory.BENIGN,
        )

    async def _beat(self, at_once: bool) -> None:
        allowed = activity.info().heartbeat_timeout
        pause = min(BEAT_SECONDS, allowed.total_seconds() / 3) if allowed else BEAT_SECONDS
        while True:
            if at_once:
                activity.heartbeat({"errors": self.errors, "line": self._line()})
            await asyncio.sleep(pause)
            at_once = True


def errors_so_far(details: Sequence[Any]) -> int:
    """The error count in the heartbeat details of an earlier attempt; 0 if there is none."""
    errors = details[0].get("errors") if details and isinstance(details[0], dict) else 0
    return errors if isinstance(errors, int) and errors >= 0 else 0

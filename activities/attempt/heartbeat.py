"""The heartbeat of an activity that may be retried: counts its errors, records its attempts and carries its progress.

Details are one object: `errors` (the tool's errors so far), `of` (attempts allowed), `line` and `progress` (percent) of
the attempt that runs, `logs` of its commands, `began` and `lasted` (milliseconds) of it, `attempts` before it (an
`Attempt` each), `moreAttempts` (before those), `waits` (attempts that did not begin, as a limit was used up) and
`limit` (which one, while the activity waits for it). Workers of different versions read each other's details: fields
may be added but never renamed, and unreadable details count as no errors. They survive to the next attempt, so its
worker knows of all before it; Temporal itself keeps only the last failure, and the workflow sees only the end.

The count of errors, not Temporal's attempt number, decides when a step has failed: the death of a worker must not use
up an attempt (FAULTS, rule 3), so the workflow schedules these activities with a heartbeat timeout and more attempts
than the step has: 20 for lost workers (`workflows.policies.WORKER_DEATHS`), any number once the call has waited for a
limit. An attempt of which no error was counted was lost with its worker.

With attempts in the retry policy alone, three kills failed a healthy step. Rejected: a loop of attempts in the workflow
(five events each, no pause or reset by Temporal's commands), a signal per attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from plansurvive.activities.feature import Waits
from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.plans.activity_io import WORKER_LOST, Attempt, logs_of, time_of
from plansurvive.plans.errors import ToolError
from plansurvive.plans.flow.ids import of_call
from plansurvive.plans.model import Retry
from plansurvive.plans.views.models.live import attempts_of

BEAT_SECONDS = 1.0
MAX_LOST = 20
"""Attempts of a call that may be lost with their workers, as `workflows.policies` has the server count them; a call
that has waited takes any number of attempts, so the activity counts them itself."""
MAX_ATTEMPTS = 20
"""Maximum number of attempts recorded one by one; those before the last 20 are counted."""
ERROR_BYTES = 500
"""Maximum length of the error in an attempt's record."""
_WORN_OUT = "every attempt lost its worker (it died or stopped sending heartbeats); run: plan doctor"
_MOST = 1_000_000_000
"""Counts above this in details are nonsense."""


class Heartbeat:
    """The heartbeat of this attempt; `errors` counts those of earlier attempts, `attempts` lists them and lost ones.

    `report` returns what changes while the attempt runs: `line`, and if known `progress` and `logs`. `earlier`: the
    attempts that were made before the activity was scheduled. `step_id`: the step that is called; the heartbeat
    names it where its id is shortened in the activity's.
    """

    def __init__(
        self, report: Callable[[], Mapping[str, Any]], retry: Retry, earlier: Sequence[Attempt] = (), step_id: str = ""
    ) -> None:
        info = activity.info()
        self._step = {"step": step_id} if step_id and of_call(info.activity_id)[0] != step_id else {}
        known = _known(info.heartbeat_details)
        self.errors, self.attempts, self.more, self.waits = len(earlier), list(earlier)[-MAX_ATTEMPTS:], 0, 0
        self._report, self._retry, self._info = report, retry, info
        self._began, self._started, self._earlier = info.started_time, time.monotonic(), len(earlier)
        if known:
            self.errors = errors_so_far(info.heartbeat_details)
            self.attempts = attempts_of(known.get("attempts"))[-MAX_ATTEMPTS:]
            self.more, self.waits = _count(known.get("moreAttempts")), _count(known.get("waits"))
        if known or earlier or info.attempt > 1:  # a first attempt has none before it
            self._count_unrecorded()
            self._add_lost(info, known)

    @contextmanager
    def beating(self, *, at_once: bool = False) -> Iterator[None]:
        """Heartbeat about every second until the block ends; `at_once`: also when it begins, as any later attempt does.

        Call `failure` after the block: a later heartbeat would overwrite its count with the old one. Raises ToolError
        WORKER_LOST if more workers were lost than an activity without limits is retried for.
        """
        info = self._info
        if info.attempt - self.waits > self._retry.attempts + MAX_LOST:
            raise ToolError(WORKER_LOST, _WORN_OUT)
        allowed = info.heartbeat_timeout
        self._pause = min(BEAT_SECONDS, allowed.total_seconds() / 3) if allowed else BEAT_SECONDS
        if at_once or info.attempt > 1:
            activity.heartbeat(self._details())
        self._wait()
        try:
            yield
        finally:
            self._next.cancel()

    def is_final(self, error: ToolError) -> bool:
        """Whether no further attempt follows this error."""
        return not error.retryable or self.errors + 1 >= self._retry.attempts

    def failure(
        self, error: ToolError, message: str, details: Mapping[str, Any], longest_wait: float
    ) -> ApplicationError:
        """The error to raise to Temporal: says whether and when to retry. Counts and records it in the heartbeat.

        `longest_wait` limits the delay before the next attempt, in seconds.
        """
        failed, final, retry = self.errors + 1, self.is_final(error), self._retry
        wait = error.retry_after if error.retry_after is not None else retry.delay * retry.factor**self.errors
        delay = None if final else min(max(wait, 0.001), longest_wait)
        self._add(self._this(failed, error.code, message, delay))
        if not final:
            activity.heartbeat({"errors": failed, "line": message[:200], **self._before()})
        return ApplicationError(
            message,
            {"code": error.code, "attempt": failed, **details, **(self._before() if final else {})},
            type=error.code,
            non_retryable=final,
            next_retry_delay=None if delay is None else timedelta(seconds=delay),
            category=ApplicationErrorCategory.BENIGN,
        )

    def waiting(self, wait: Waits, delay: float) -> ApplicationError:
        """The error to raise to Temporal when it does not begin: neither an error nor an attempt of the step.

        `delay`: seconds until the next attempt.
        """
        self.waits += 1
        activity.heartbeat({"errors": self.errors, "limit": wait.what, **self._before()})
        return ApplicationError(
            wait.message, type=wait.code, next_retry_delay=timedelta(seconds=max(delay, 0.001)),
            category=ApplicationErrorCategory.BENIGN,
        )  # fmt: skip

    @property
    def before(self) -> dict[str, Any]:
        """The attempts before this one as fields of a Return; empty if there were none."""
        return {"attempts": self.attempts, "more_attempts": self.more} if self.attempts or self.more else {}

    def _this(self, number: int, code: str, message: str, delay: float | None) -> Attempt:
        """The record of the attempt that has just failed."""
        logs = self._report().get("logs")
        return Attempt(
            number=number, began=self._began, duration=self._lasted, code=code, error=_short(message), delay=delay,
            logs=logs,
        )  # fmt: skip

    def _count_unrecorded(self) -> None:
        """Count errors whose attempts are not readable here: a worker of another version recorded them."""
        recorded = sum(attempt.code != WORKER_LOST for attempt in self.attempts)
        self.more = max(self.more, self.errors - recorded)

    def _add_lost(self, info: activity.Info, known: Mapping[str, Any]) -> None:
        """Record the attempts that Temporal counts and no worker ended: the first has the details' last progress."""
        lost = min(info.attempt - 1 + self._earlier - len(self.attempts) - self.more - self.waits, _MOST)
        began, lasted = time_of(known.get("began")), known.get("lasted")
        if lost > 0 and began is not None:
            duration = float(lasted) if isinstance(lasted, int | float) and 0 <= lasted <= _MOST else 0.0
            self._add(self._lost(began, duration, known.get("line"), known.get("logs")))
        for _ in range(lost - min(lost, MAX_ATTEMPTS) + (began is not None), lost):
            self._add(self._lost(info.scheduled_time))
        self.more += max(0, lost - MAX_ATTEMPTS)

    def _lost(self, began: datetime, duration: float = 0.0, line: Any = "", logs: Any = None) -> Attempt:
        progress = f"; its last progress was: {line}" if isinstance(line, str) and line else ""
        text = _short(f"its worker died, was stopped or too busy to report{progress}")
        found = logs_of(logs)
        return Attempt(number=self.errors + 1, began=began, duration=duration, code=WORKER_LOST, error=text, logs=found)

    def _add(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self.more += max(0, len(self.attempts) - MAX_ATTEMPTS)
        del self.attempts[:-MAX_ATTEMPTS]

    def _before(self) -> dict[str, Any]:
        """The details about the call, the attempts that have ended, and how many are allowed."""
        ended = [attempt.model_dump(mode="json", exclude_defaults=True) for attempt in self.attempts]
        counted = {"attempts": ended, "moreAttempts": self.more, "waits": self.waits}
        return {"of": self._retry.attempts, **self._step, **{name: value for name, value in counted.items() if value}}

    @property
    def _lasted(self) -> float:
        return round((time.monotonic() - self._started) * 1_000, 3)

    def _wait(self) -> None:
        # A timer, not a task: most calls end before their first heartbeat, and a task costs more than they do.
        self._next = asyncio.get_running_loop().call_later(self._pause, self._beat)

    def _beat(self) -> None:
        self._wait()
        activity.heartbeat(self._details())

    def _details(self) -> dict[str, Any]:
        running = {"began": self._began.astimezone(UTC).isoformat(), "lasted": self._lasted}
        return {"errors": self.errors, **self._report(), **running, **self._before()}


def errors_so_far(details: Sequence[Any]) -> int:
    """The error count in the heartbeat details of an earlier attempt; 0 if there is none."""
    return _count(_known(details).get("errors"))


def _known(details: Sequence[Any]) -> Mapping[str, Any]:
    return details[0] if details and isinstance(details[0], dict) else {}


def _count(found: Any) -> int:
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _MOST
    return found if is_count else 0


def _short(text: str) -> str:
    return bounded(one_line(text), ERROR_BYTES)

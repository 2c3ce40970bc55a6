"""Timeouts and retry policies of all activities, in one table.

A step's attempts count tool errors only (three by default, 1 s and 2 s apart; seed 004). The activity counts them and
ends the retries with a non-retryable error. The server's retry policy allows WORKER_DEATHS more (FAULTS, rule 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from temporalio.common import RetryPolicy

from plansurvive.plans.model import Retry

WORKER_DEATHS = 20
"""Attempts of one step that may be lost with their worker before the step fails with WORKER_LOST."""
SLACK = 30.0
"""Seconds added to start-to-close: the activity enforces the time limit itself, the server only if it could not."""
HEARTBEAT_TIMEOUT = timedelta(seconds=5)
"""Heartbeat timeout, after which a worker counts as dead. Activities send a heartbeat about every second."""
BEAT = timedelta(seconds=1)
"""Longest interval between a worker's heartbeats to the server: how late a step notices its cancellation."""

LOCAL_WAIT = timedelta(seconds=0.5)
"""Longest pause of a local activity between two attempts in which it keeps the worker's slot for workflow tasks.

There are few slots: plans whose local activities failed over and over would take all of them. Longer pauses are timers.
"""


@dataclass(frozen=True)
class Policy:
    """Options of one kind of activity. `timeout`: seconds; `repeatable`: false for calls that must not run twice."""

    timeout: float
    retry: Retry
    repeatable: bool = True

    @property
    def start_to_close(self) -> timedelta:
        """Start-to-close timeout on the server: the time limit of one attempt plus SLACK."""
        return timedelta(seconds=self.timeout + SLACK)

    @property
    def retry_policy(self) -> RetryPolicy:
        """Retry policy on the server: the attempts plus WORKER_DEATHS."""
        return _retry_policy(self.retry.attempts, self.retry.delay, self.retry.factor)

    @property
    def retry_policy_counted(self) -> RetryPolicy:
        """The same at a place that counts deaths of workers (`workflows.place`): not repeatable, so one attempt."""
        return self.retry_policy if self.repeatable else RetryPolicy(maximum_attempts=1)


@lru_cache(maxsize=100)
def _retry_policy(attempts: int, delay: float, factor: float) -> RetryPolicy:
    """The same object for all steps of a loop."""
    return RetryPolicy(
        initial_interval=timedelta(seconds=max(delay, 0.001)),
        backoff_coefficient=factor,
        maximum_attempts=attempts + WORKER_DEATHS,
    )


CHECK = Policy(60.0, Retry(attempts=100, delay=1.0, factor=1.5))
"""check_plan: reads only the worker's tools and whether the workspace exists."""
ITEMS = Policy(120.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""list_items: reads stored values."""
ASK_LLM = Policy(1_800.0, Retry(attempts=5, delay=2.0, factor=2.0))
"""ask_llm: the worker enforces a shorter timeout (PLANS_LLM_TIMEOUT) and counts the endpoint's errors itself."""
SNAPSHOT = Policy(60.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""snapshot_workspace and compare_files: reading a workspace."""
CHANGES = Policy(600.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""file_changes: listing or undoing a plan's file changes; idempotent."""
NEW_QUEUE = timedelta(seconds=10)
"""Schedule-to-start timeout for a queue that an edit is about to bind a step to. A running worker answers at once."""
UNSERVED = timedelta(seconds=60)
"""How long to wait for a worker where a person waits for the answer."""
SUMMARY = Policy(30.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""record_end, write_summary, track_agent: few attempts, because a full disk must not keep a plan from ending."""

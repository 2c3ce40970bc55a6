"""One table: kind of activity -> time limits, attempts, what is never retried.

A step's attempts (seed 004: three, waiting 1 s then 2 s) count tool errors only. They are counted by the activity,
which ends the retries itself with a non-retryable error; the policy allows for the deaths of workers on top (FAULTS,
rule 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy

from plans.model import Plan, Retry, Step, ToolSpec

WORKER_DEATHS = 20
"""Attempts of one step that may be lost with their worker before the step is given up."""
SLACK = 30.0
"""Seconds an attempt may overrun its own time limit, which the activity keeps, before the server gives it up."""
HEARTBEAT_TIMEOUT = timedelta(seconds=5)
"""A worker silent for this long is taken for dead; activities beat about every second."""


@dataclass(frozen=True)
class Policy:
    """The options of one activity."""

    timeout: float
    retry: Retry
    repeatable: bool = True

    @property
    def start_to_close(self) -> timedelta:
        """Time limit of one attempt as the server keeps it."""
        return timedelta(seconds=self.timeout + SLACK)

    @property
    def retry_policy(self) -> RetryPolicy:
        """Attempts and waits as the server keeps them."""
        return RetryPolicy(
            initial_interval=timedelta(seconds=max(self.retry.delay, 0.001)),
            backoff_coefficient=self.retry.factor,
            maximum_attempts=self.retry.attempts + WORKER_DEATHS,
        )


def of_step(plan: Plan, step: Step, spec: ToolSpec, args: Mapping[str, Any]) -> Policy:
    """What the step says, else the plan's defaults, else the tool's own; `args` are those of this call."""
    retry = step.retry or plan.defaults.retry or spec.retry or Retry()
    repeatable = spec.repeatable if step.repeatable is None else step.repeatable
    if not repeatable:
        retry = retry.model_copy(update={"attempts": 1})
    timeout = step.timeout or plan.defaults.timeout
    asked = args.get("timeout")
    if timeout is None:
        # A tool with a time limit of its own keeps that one itself; ours must not come before it.
        timeout = max(spec.timeout, asked + 5.0 if isinstance(asked, (int, float)) else 0.0)
    return Policy(timeout, retry, repeatable)


CHECK = Policy(60.0, Retry(attempts=100, delay=1.0, factor=1.5))
"""Checking a plan reads nothing but the worker's own tools and the workspace's existence."""
ASK_LLM = Policy(1_800.0, Retry(attempts=5, delay=2.0, factor=2.0))
"""One question to the LLM. The worker keeps a shorter limit (PLANS_LLM_TIMEOUT) and counts the endpoint's errors."""
SNAPSHOT = Policy(60.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""Looking at a workspace for the LLM."""
CHANGES = Policy(600.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""Telling what a plan changed in files, or taking it back; it can be repeated."""
NEW_QUEUE = timedelta(seconds=10)
"""How long a worker is waited for that an edit is about to bind a step to; one that is there answers at once."""
UNSERVED = timedelta(seconds=60)
"""How long a worker may be waited for by somebody who looks on."""
SUMMARY = Policy(30.0, Retry(attempts=3, delay=1.0, factor=2.0))
"""Writing the summary: a full disk must not keep a finished plan from ending."""

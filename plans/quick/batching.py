"""Which calls may be quick, and how much of them a worker's death can cost.

A quick call is a local activity: the worker that decides about a step makes the call within the same workflow task, and
history has all results of a workflow task at once, when it ends. If the worker dies before, they are lost and the calls
are made again. So only calls that change nothing are quick, and a window bounds what can be lost: the results of a
workflow task lie within QUICK_SECONDS, by the worker's clock.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from plans.model import Durable, Step, ToolSpec, Value

QUICK_SECONDS = 0.25
"""From the scheduling of a workflow task's first quick call to the end of its last one, at most."""
FULL_SECONDS = 0.2
"""After so long, the next call is left to the next workflow task: it would hardly be done in time."""
SLOW_SECONDS = 0.05
"""A call that had so long and was not done in time was not quick."""
STRIKES = 3
"""After so many calls of a tool that were not quick, a run makes its calls as activities."""
STALE_SECONDS = 1.25
"""So long after the beginning of a window its workflow task has ended, since only quick calls keep it open."""
MAX_CALLS = 100
"""Quick calls in one workflow task."""
IN_FLIGHT = 8
"""Quick calls at a time, in runs that began with a version that made several."""
MAX_RESULT_BYTES = 16_384
"""Longest result of a quick call, as JSON. The server refuses more than 4 MB from one workflow task (TEMPORAL.md 2)."""
NOT_QUICK, TOO_LATE = "NOT_QUICK", "TOO_LATE"
"""Types of the failure of a call whose tool took too long or returned too much, and of one that began too late."""


class Quick(Value):
    """What is known of a call that was made quickly; of others, the events of their activity in history say it."""

    step_id: str
    args: str = Field(description="SHA-256 of the arguments, in the form of the audit record.")
    began: float = Field(description="When it was scheduled, in seconds since 1970, by the worker's clock.")
    ended: float = Field(description="When it had its result.")


def may_batch(spec: ToolSpec) -> bool:
    """Whether calls of a tool may be made twice without anybody noticing: the worker's own, declared `pure`."""
    return spec.effect == "pure" and spec.repeatable and not spec.durable and not spec.server


def is_batched(step: Step, spec: ToolSpec, durable: Durable | None, args: dict[str, Any]) -> bool:
    """Whether a step's call is made quickly: the step, else the plan (`durable`), else the tool allows it.

    Never a call that asks a person by itself, even if that is waived.
    """
    wished = step.durable or durable or ("batch" if spec.batch else "step")
    asks = step.requires_approval is True or spec.asks_by_default(args, carries=True)
    return wished == "batch" and may_batch(spec) and step.repeatable is not False and not asks

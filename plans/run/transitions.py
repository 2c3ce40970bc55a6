"""The legal status transitions of a step and of a plan, as data, each with its cause.

`plans.execution.schedule` enforces these tables; ARCHITECTURE.md draws them (`scripts/state_diagram.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.plans.run import PlanStatus, Status

STEP_MOVES: Mapping[Status, Mapping[Status, str]] = {
    Status.PENDING: {
        Status.BLOCKED: "the plan begins, a dependency is open",
        Status.READY: "the plan begins, none is open",
        Status.SKIPPED: "a reviewer skips it",
    },
    Status.BLOCKED: {Status.READY: "its last dependency lets it start", Status.SKIPPED: "a reviewer skips it"},
    Status.READY: {
        Status.RUNNING: "started",
        Status.COMPLETED: "answered, or its event arrived",
        Status.BLOCKED: "the plan stops, or an edit adds a dependency",
        Status.SKIPPED: "denied, condition not met, or a reviewer skips it",
        Status.FAILED: "bad arguments, approval timed out, or not recovered",
    },
    Status.RUNNING: {
        Status.COMPLETED: "its tool succeeded",
        Status.FAILED: "its tool failed, or the plan was cancelled",
        Status.SKIPPED: "skipped after all",
        Status.READY: "awaits approval or recovery",
    },
    Status.SKIPPED: {Status.PENDING: "a reviewer takes the skip back"},
}
"""Legal moves of a step, each with its cause. A step of a new run may start out as skipped (`left_out`)."""
_LAST = {
    PlanStatus.COMPLETED: "every step completed, or skipped by a reviewer or a condition",
    PlanStatus.PARTIAL: "some steps failed, were denied or never ran",
    PlanStatus.FAILED: "a critical step failed",
    PlanStatus.CANCELLED: "cancelled or interrupted",
}
_CANCELLED = {PlanStatus.CANCELLED: "an agent is cancelled while it reports its end"}
PLAN_MOVES: Mapping[PlanStatus, Mapping[PlanStatus, str]] = {
    PlanStatus.DRAFT: {
        PlanStatus.REVIEW: "checked, a person begins it",
        PlanStatus.RUNNING: "checked",
        PlanStatus.FAILED: "its worker refused it",
        PlanStatus.CANCELLED: "cancelled",
    },
    PlanStatus.REVIEW: {PlanStatus.RUNNING: "begin", **_LAST},
    PlanStatus.RUNNING: {PlanStatus.PAUSED: "pause", PlanStatus.REVIEW: "regenerate", **_LAST},
    PlanStatus.PAUSED: {PlanStatus.RUNNING: "unpause", PlanStatus.REVIEW: "regenerate", **_LAST},
    PlanStatus.COMPLETED: _CANCELLED,
    PlanStatus.PARTIAL: _CANCELLED,
    PlanStatus.FAILED: _CANCELLED,
}
"""Legal moves of a plan or an agent's run, each with its cause."""

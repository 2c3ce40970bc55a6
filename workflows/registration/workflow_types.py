"""The workflows of plans, for every worker that runs them, ours or one with `PlansPlugin`, and for replaying."""

from __future__ import annotations

from workflows.agent import AgentWorkflow
from workflows.file_changes import ChangesWorkflow
from workflows.guards.lock_keeper import WorkspaceLockWorkflow
from workflows.limits.keeper import LimitsWorkflow
from workflows.notify.notifier import NotifyWorkflow
from workflows.plan import PlanWorkflow
from workflows.upkeep.prune import PruneWorkflow

WORKFLOWS: tuple[type, ...] = (
    *(ChangesWorkflow, PlanWorkflow, AgentWorkflow, NotifyWorkflow),
    *(LimitsWorkflow, WorkspaceLockWorkflow, PruneWorkflow),
)

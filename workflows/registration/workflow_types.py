"""The workflows of plans, for every worker that runs them, ours or one with `PlansPlugin`, and for replaying."""

from __future__ import annotations

from plansurvive.workflows.agent import AgentWorkflow
from plansurvive.workflows.file_changes import ChangesWorkflow
from plansurvive.workflows.guards.lock_keeper import WorkspaceLockWorkflow
from plansurvive.workflows.limits.keeper import LimitsWorkflow
from plansurvive.workflows.notify.notifier import NotifyWorkflow
from plansurvive.workflows.plan import PlanWorkflow
from plansurvive.workflows.upkeep.prune import PruneWorkflow

WORKFLOWS: tuple[type, ...] = (
    *(ChangesWorkflow, PlanWorkflow, AgentWorkflow, NotifyWorkflow),
    *(LimitsWorkflow, WorkspaceLockWorkflow, PruneWorkflow),
)

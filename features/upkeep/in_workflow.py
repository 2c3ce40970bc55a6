"""PruneWorkflow: removes what no plan needs from the state directory of its worker. Started by a schedule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy

from plansurvive.features.upkeep.model import PruneOrder
from plansurvive.plans.errors import PlanError
from plansurvive.workflows import policies


@workflow.defn(name="PruneWorkflow", failure_exception_types=[PlanError, ValidationError])
class PruneWorkflow:
    """One collection. Its result says what was removed."""

    @workflow.run
    async def run(self, order: PruneOrder) -> dict[str, Any]:
        """Have the activity `prune` do it; the next run of the schedule tries again what failed."""
        found: dict[str, Any] = await workflow.execute_activity(
            "prune", order, summary="remove what no plan needs",
            start_to_close_timeout=timedelta(hours=6), heartbeat_timeout=policies.HEARTBEAT_TIMEOUT * 6,
            retry_policy=RetryPolicy(maximum_attempts=3),
        )  # fmt: skip
        return found


IN_RUN = None
WORKFLOWS = (PruneWorkflow,)

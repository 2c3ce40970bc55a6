"""Starts the activity that lists the items of a loop whose list is stored outside history."""

from __future__ import annotations

import asyncio

from temporalio import workflow

from plansurvive.plans.flow.ids import activity_id
from plansurvive.plans.flow.opened import ListItems, Opened
from plansurvive.plans.model import ForEach, Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepValues
from plansurvive.workflows import policies


def start(run: Run, step: Step, rule: ForEach, values: StepValues) -> asyncio.Future[Opened]:
    """List the items; the workers of the step's queue can read what its steps read."""
    run.steps[step.id].calls += 1
    needed = ListItems(rule=rule, values=values.inline, large=values.large, composed=values.composed)
    return workflow.start_activity(
        "list_items",
        needed.model_dump(mode="json", exclude_defaults=True),
        result_type=Opened,
        task_queue=run.queue_of(step),
        activity_id=activity_id(step.id, lambda name: f"{name}#items{run.steps[step.id].calls}"),
        summary=f"{step.id} · list the items"[:200],
        start_to_close_timeout=policies.ITEMS.start_to_close,
        retry_policy=policies.ITEMS.retry_policy,
    )

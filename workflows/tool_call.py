"""Starts a tool call: an activity named like the tool, with a `Call` as its argument.

`plans.execution.next_action` decides whether a step's tool is called, `workflows.execution` when;
`plans.execution.calling` what the worker gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

from plansurvive.plans.activity_io import Attempt, Call
from plansurvive.plans.execution.calling import call_for, terms_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_call
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.ids import activity_id, call_name
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.step_call import StepCall, StepValues
from plansurvive.workflows import policies
from plansurvive.workflows.payloads import of_json
from plansurvive.workflows.place import Destination, Place
from plansurvive.workflows.policies import Policy


def start(
    schedule: Schedule, step: Step, filled: Filled, values: StepValues, place: Place, earlier: Sequence[Attempt] = (),
    made: StepCall | None = None,
) -> asyncio.Future[dict[str, Any]]:  # fmt: skip
    """Start the tool call of a running step and add it to the step's tool history.

    `earlier`: its attempts that were made in another activity; `made`: the call that was decided about, if known.
    """
    run = schedule.run
    terms = terms_of(run.plan, step, run.facts.tools[step.tool], filled.args)
    policy = Policy(*terms)
    run.steps[step.id].calls += 1
    note_call(run, step, filled.args)

    def begin(to: Destination) -> workflow.ActivityHandle[dict[str, Any]]:
        nonlocal made
        place.session = place.session or session_of_workflow()
        call = call_for(run, step, filled, values, terms, place.session, earlier, made)
        made = None  # at the next host, the workspace is another one
        call = schedule.rules.extended(run, step, call)
        return _begin(run, step, call, policy, to)

    return place.call(step, policy, begin)


def _begin(
    run: Run, step: Step, call: Call, policy: Policy, to: Destination
) -> workflow.ActivityHandle[dict[str, Any]]:
    return workflow.start_activity(
        step.tool,
        of_json(call.model_dump_json(exclude_defaults=True)),
        task_queue=to.queue,
        activity_id=activity_id(step.id, lambda name: call_name(name, run.steps[step.id].calls)),
        summary=_summary(run, step),
        start_to_close_timeout=policy.start_to_close,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        schedule_to_start_timeout=to.patience,
        retry_policy=policy.retry_policy if to.patience is None else policy.retry_policy_counted,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def _summary(run: Run, step: Step) -> str:
    return " · ".join(filter(None, (step.id, run.steps[step.id].mended or run.description_of(step))))[:200]


def session_of_workflow() -> str:
    """What the idempotency keys of this run's calls begin with."""
    info = workflow.info()
    return f"{info.workflow_id}/{info.first_execution_run_id[:8]}"

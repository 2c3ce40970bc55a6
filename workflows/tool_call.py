"""Starts a tool call: an activity named like the tool, with a `Call` as its argument.

`plans.execution.next_action` decides whether a step's tool is called, `workflows.execution` when. Timeouts and retries
come from `workflows.policies`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

from plansurvive.plans.activity_io import Call
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.file_tracking import known
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_call
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.ids import call_name
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.run import Run
from plansurvive.plans.step_call import StepValues, call_of
from plansurvive.workflows import policies
from plansurvive.workflows.payloads import of_json
from plansurvive.workflows.place import Destination, Place
from plansurvive.workflows.policies import Policy


def start(
    schedule: Schedule, step: Step, filled: Filled, values: StepValues, place: Place
) -> asyncio.Future[dict[str, Any]]:
    """Start the tool call of a running step and add it to the step's tool history."""
    run = schedule.run
    spec, state = run.facts.tools[step.tool], run.steps[step.id]
    policy = policies.of_step(run.plan, step, spec, filled.args)
    state.calls += 1
    note_call(run, step, filled.args)

    def begin(to: Destination) -> workflow.ActivityHandle[dict[str, Any]]:
        call = schedule.rules.extended(run, step, _call(run, step, spec, filled, values, policy))
        return _begin(run, step, call, policy, to)

    return place.call(step, policy, begin)


def _begin(
    run: Run, step: Step, call: Call, policy: Policy, to: Destination
) -> workflow.ActivityHandle[dict[str, Any]]:
    return workflow.start_activity(
        step.tool,
        of_json(call.model_dump_json(exclude_defaults=True)),
        task_queue=to.queue,
        activity_id=call_name(step.id, run.steps[step.id].calls),
        summary=_summary(run, step),
        start_to_close_timeout=policy.start_to_close,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        schedule_to_start_timeout=to.patience,
        retry_policy=policy.retry_policy if to.patience is None else policy.retry_policy_counted,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def _summary(run: Run, step: Step) -> str:
    return " · ".join(filter(None, (step.id, run.steps[step.id].mended or step.description)))[:200]


def _call(run: Run, step: Step, spec: ToolSpec, filled: Filled, values: StepValues, policy: Policy) -> Call:
    decision, files = run.decisions.get(step.id), known(run, step, filled)
    has_stored = bool(filled.deferred)
    return Call(
        args=filled.args,
        plan_id=run.plan.id or "",
        step_id=step.id,
        key=_key(call_name(step.id, run.steps[step.id].calls)),
        workspace=run.workspace_of(step),
        directory=run.directory_of(step),
        timeout=policy.timeout,
        retry=policy.retry,
        approved=decision is not None or approvals.is_waived(run, step, call_of(run, step, filled, values)),
        strict=run.facts.strict_approvals,
        repeatable=policy.repeatable,
        stamps=files.stamps,
        notes_seen=files.notes_seen,
        notes_left=files.notes_left,
        deferred=filled.deferred,
        values=values.inline if has_stored else {},
        large=values.large if has_stored else {},
        composed=values.composed if has_stored else {},
        quoting=spec.quoting if has_stored else {},
        definition=spec.definition,
        owns=[] if run.facts.strict_approvals else run.owns,
        drafted=bool(run.request) and not run.literal,
    )


def _key(call: str) -> str:
    """The idempotency key of a call: the same for all its attempts and after continue-as-new, unique per call."""
    info = workflow.info()
    return f"{info.workflow_id}/{info.first_execution_run_id[:8]}/{call.replace('/', '%2F')}"

"""One call of a tool: the activity of the tool's name, and the `Call` it gets.

`plans.execution.next_action` decides whether a step is called, `workflows.execution` when; time limits and attempts
are those of `workflows.policies`.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

from plans.activity_io import Call
from plans.definition.references import Filled
from plans.execution import approvals
from plans.execution.file_tracking import known
from plans.execution.next_action import StepValues
from plans.execution.tool_history import note_call
from plans.model import Step, ToolSpec
from plans.run import Run
from workflows import policies
from workflows.policies import Policy


def start(run: Run, step: Step, filled: Filled, values: StepValues) -> workflow.ActivityHandle[dict[str, Any]]:
    """Call the tool of a step that is running, and note that it was called."""
    spec, state = run.facts.tools[step.tool], run.steps[step.id]
    policy = policies.of_step(run.plan, step, spec, filled.args)
    state.calls += 1
    note_call(run, step, filled.args)
    call = _call(run, step, spec, filled, values, policy)
    return workflow.start_activity(
        step.tool,
        call.model_dump(mode="json", exclude_defaults=True),
        task_queue=run.queue_of(step),
        activity_id=_name(step.id, state.calls),
        summary=" · ".join(filter(None, (step.id, state.mended or step.description)))[:200],
        start_to_close_timeout=policy.start_to_close,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policy.retry_policy,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


def _call(run: Run, step: Step, spec: ToolSpec, filled: Filled, values: StepValues, policy: Policy) -> Call:
    decision, files = run.decisions.get(step.id), known(run, step, filled)
    return Call(
        args=filled.args,
        plan_id=run.plan.id or "",
        step_id=step.id,
        key=_key(_name(step.id, run.steps[step.id].calls)),
        workspace=run.workspace_of(step),
        timeout=policy.timeout,
        retry=policy.retry,
        approved=decision is not None or approvals.is_waived(run, step, filled.args),
        repeatable=policy.repeatable,
        stamps=files.stamps,
        notes_seen=files.notes_seen,
        notes_left=files.notes_left,
        deferred=filled.deferred,
        values=values.inline if filled.deferred else {},
        large=values.large if filled.deferred else {},
        quoting=spec.quoting if filled.deferred else {},
    )


def _name(step_id: str, calls: int) -> str:
    return step_id if calls == 1 else f"{step_id}#{calls}"


def _key(call: str) -> str:
    """The same over all attempts of a call and in every run that continues this one; another call has another."""
    info = workflow.info()
    return f"{info.workflow_id}/{info.first_execution_run_id[:8]}/{call}"

"""One call of a tool: a step's arguments with the references filled in, and the activity that gets them.

Whether and when a step is called is decided by `workflows.execution`; time limits and attempts by `workflows.policies`.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from plans.activity_io import Call
    from plans.agents.as_plan import TOOL
    from plans.agents.order import check_step
    from plans.definition.references import Filled, fill, find
    from plans.errors import BadReference
    from plans.execution import approvals
    from plans.execution.file_tracking import known
    from plans.execution.step_values import StepValues, size_of
    from plans.execution.tool_history import note_call
    from plans.model import Step, ToolSpec
    from plans.run import Run
    from workflows import policies
    from workflows.policies import Policy
    from workflows.timers import check_seconds

MAX_ARGS_CHARACTERS = 16_000_000
"""Arguments of one step, references filled in: a small plan can multiply values without end."""


def fill_args(run: Run, step: Step, spec: ToolSpec, values: StepValues) -> Filled:
    """The arguments of a step's next call; raises BadReference."""
    args = run.args_of(step)
    if run.literal:
        return Filled(args, [])
    values.add(reference.root for reference in find(args))
    return fill(args, values.inline, spec.quoting, values.large)


def check_args(spec: ToolSpec, filled: Filled) -> None:
    """Raise BadReference for arguments this workflow cannot work with; the others are judged by the tool itself."""
    if size_of(filled.args) > MAX_ARGS_CHARACTERS:
        text = f"the arguments are longer than {MAX_ARGS_CHARACTERS} characters; pass the data in a file"
        raise BadReference(text, "ARGS_TOO_LARGE")
    if spec.durable:
        check_seconds(spec, filled)
    if spec.name == TOOL:
        check_step(filled.args)


def start(
    run: Run, step: Step, spec: ToolSpec, filled: Filled, values: StepValues
) -> workflow.ActivityHandle[dict[str, Any]]:
    """Call the tool of a step that is running, and note that it was called."""
    state, policy = run.steps[step.id], policies.of_step(run.plan, step, spec, filled.args)
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

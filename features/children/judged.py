"""Has a worker with a policy judge a step that is a plan or an agent, before its child begins.

The workflow reads no rule: an activity judges the call, as the layer around attempts does for a tool's, and fails with
the same codes. A worker without a policy, when the plan began, is not asked: nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from plansurvive.plans.activity_io import JUDGE_CALL, Call, CallToJudge
from plansurvive.plans.execution.calling import key_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.ids import activity_id
from plansurvive.plans.model import Retry, Step
from plansurvive.workflows import policies
from plansurvive.workflows.payloads import of_json
from plansurvive.workflows.place import Destination, Place
from plansurvive.workflows.tool_call import session_of_workflow


async def judged(schedule: Schedule, step: Step, args: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The parts of the step's result that say what the policy has said; empty if there is none.

    Raises the activity's error: POLICY_DENIED, or APPROVAL_REQUIRED if a person must decide first.
    """
    run = schedule.run
    if not run.facts.tools[step.tool].judged:
        return {}
    call = Call(
        args=dict(args), plan_id=run.plan.id or "", step_id=step.id, workspace=run.workspace_of(step), timeout=60.0,
        key=key_of(session_of_workflow(), step.id, run.steps[step.id].calls), retry=Retry(),
        approved=step.id in run.decisions,
    )  # fmt: skip
    request = CallToJudge(tool=step.tool, call=schedule.rules.extended(run, step, call))

    def begin(to: Destination) -> workflow.ActivityHandle[dict[str, Any]]:
        return workflow.start_activity(
            JUDGE_CALL,
            of_json(request.model_dump_json(exclude_defaults=True)),
            task_queue=to.queue,
            activity_id=activity_id(step.id, "judge:{}".format),
            summary=f"{step.id} · judge by the policy"[:200],
            schedule_to_start_timeout=to.patience,
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )

    try:
        return {"parts": (await place.call(step, policies.SNAPSHOT, begin)).get("parts", {})}
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        raise

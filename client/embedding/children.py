"""Running a plan as a child of a workflow of yours, on a worker with `PlansPlugin`.

    ended = await run_plan({"title": "Report", "steps": [...]}, plan_id=f"report-{order}", inputs={"order": order})

What it asks is decided as for any plan; `plan list`, `plan pending` and the page show it by its id. It ends with your
workflow if that is cancelled or terminated, as any child workflow does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.workflow import ParentClosePolicy

from plansurvive.client import ids
from plansurvive.client.verbs.start import shown_of
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.run import Options
from plansurvive.plans.views.summary import Summary
from plansurvive.workflows.completion import VALUE

_KIND = "PlanWorkflow"


@dataclass(frozen=True)
class PlanEnd:
    """How a plan ended that did not fail."""

    summary: Summary
    value: Any = None
    """Its `outputs` by name; None if it has none."""
    is_large: bool = False
    """The value is too large for a history, so it is not here: `client.runs.show` and `client.large_values` read it."""


async def run_plan(
    plan: Mapping[str, Any], *, plan_id: str, inputs: Mapping[str, Any] | None = None, options: Options | None = None,
    task_queue: str | None = None, parent_close_policy: ParentClosePolicy = ParentClosePolicy.REQUEST_CANCEL,
) -> PlanEnd:  # fmt: skip
    """Run a plan to its end and return its summary, and its outputs.

    `plan`: the content of a plan file. `plan_id`: unique for ever, the same in each replay, so derive it from the id of
    your workflow. `task_queue`: of the workers that run it; by default yours. Raises ApplicationError INVALID_PLAN or
    BAD_PLAN_ID, which fails your workflow, and ChildWorkflowError if the plan fails, is partial or is cancelled; its
    cause has the type PLAN_FAILED or PLAN_PARTIAL, and the summary in its details.
    """
    checked = read_plan(dict(plan))
    if isinstance(checked, list):
        raise _failed(InvalidPlan(checked))
    try:
        chosen = ids.checked(plan_id)
    except PlanError as error:
        raise _failed(error) from None
    given = (options or Options()).model_copy(update={"inputs": dict(inputs)} if inputs else {})
    request = {"plan": {**plan, "id": chosen}, "options": given.model_dump(mode="json", exclude_none=True)}
    found = await workflow.execute_child_workflow(
        _KIND, request, id=ids.workflow_id(chosen), task_queue=task_queue, parent_close_policy=parent_close_policy,
        result_type=dict, **shown_of(checked, checked.title or chosen, given),
    )  # fmt: skip
    value = found.pop(VALUE, None) or {}
    return PlanEnd(Summary.read(found), value.get("value"), bool(value.get("isLarge")))


def _failed(error: PlanError) -> ApplicationError:
    """Any other exception would repeat the workflow task for ever."""
    return ApplicationError(error.message, type=error.code, non_retryable=True)

"""Editing a plan: one typed function per change, each answered with the new version and what became different.

await edits.edit(client, "p", [SetField(op="set", step_id="s2", path="args.path", value="b.txt")], by="ann")
await edits.regenerate(client, "p", "write the tests first")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from client.errors import NoWorker, PlanClosed
from client.ids import workflow_id
from client.rpc import RPC_TIMEOUT, about, ask
from plans.edits import Edit, EditPlan, Regenerate
from plans.errors import InvalidPlan, PlanError, Refused
from plans.model import Problem, Value


class Edited(Value):
    """A change that was accepted."""

    version: int
    diff: list[str]


async def edit(
    client: Client, plan: str, edits: Sequence[Edit], *, expect_version: int | None = None, by: str = "", why: str = ""
) -> Edited:
    """Apply edits, all or none. Raises Refused (STALE_VERSION, TOO_LATE, ...), InvalidPlan, PlanClosed, NoWorker."""
    message = EditPlan(edits=list(edits), expect_version=expect_version, by=by, comment=why)
    return Edited.model_validate(
        await update(client, plan, "edit", message.model_dump(mode="json", exclude_unset=True))
    )


async def regenerate(
    client: Client, plan: str, feedback: str, *, expect_version: int | None = None, by: str = ""
) -> Edited:
    """Have the LLM revise what has not begun; the plan is in review then. Takes as long as the LLM does.

    Raises as `edit`, and LLM_ codes: then the plan goes on as it was.
    """
    message = Regenerate(feedback=feedback, expect_version=expect_version, by=by)
    answer = await update(client, plan, "regenerate", message.model_dump(mode="json", exclude_none=True))
    return Edited.model_validate(answer)


async def plan_file(client: Client, plan: str) -> dict[str, Any]:
    """The plan as a plan file, without what happened to it."""
    return dict(await ask(client, plan, "file"))


async def update(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float = RPC_TIMEOUT.total_seconds()
) -> dict[str, Any]:
    """The plan's answer, however long it takes once it is accepted.

    `patience`: the seconds until a worker must have accepted it.
    Raises Refused, InvalidPlan with every problem, PlanClosed, PlanNotFound; NoWorker when nobody takes the message.
    """
    handle = client.get_workflow_handle(workflow_id(plan))
    try:
        with about(plan):
            accepted = await handle.start_update(
                name, message, wait_for_stage=WorkflowUpdateStage.ACCEPTED, rpc_timeout=timedelta(seconds=patience)
            )
            return dict(await accepted.result())
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error
    except RPCTimeoutOrCancelledError as error:
        raise NoWorker(f"plan '{plan}' did not answer; is there a worker? start one: plan worker") from error


def _refusal(cause: BaseException | None) -> PlanError:
    if not isinstance(cause, ApplicationError):
        return PlanError(str(cause), "REFUSED")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    problems = [Problem.model_validate(each) for each in detail.get("problems", [])]
    if problems:
        return InvalidPlan(problems)
    if cause.type == "AcceptedUpdateCompletedWorkflow":
        return PlanClosed("the plan ended before the change could be made; `plan summary` tells how")
    kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
    return kind(cause.message, cause.type)

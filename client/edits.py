"""Edits to a plan, sent as updates; each returns the new version and a diff.

await edits.edit(client, "p", [SetField(op="set", step_id="s2", path="args.path", value="b.txt")], by="ann")
await edits.regenerate(client, "p", "write the tests first")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic import Field
from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from client.differences.plan_diff import PlanDiff, plan_diff, plan_of
from client.errors import NoWorker, PlanClosed
from client.ids import plan_id, workflow_id
from client.rpc import RPC_TIMEOUT, about, ask
from plans.edits import MAX_BYTES, Edit, EditPlan, Regenerate
from plans.errors import InvalidPlan, PlanError, Refused
from plans.execution.messages import MAX_BYTES as MESSAGE_BYTES
from plans.execution.messages import check_size
from plans.model import Problem, Value


class Edited(Value):
    """An accepted edit."""

    version: int
    """The plan's new version."""
    diff: list[str]
    """What changed, one line per change, for people."""
    warnings: list[str] = Field(default_factory=list)
    """What follows from it that may not be meant: steps that a skip blocks permanently."""


async def edit(
    client: Client, plan: str, edits: Sequence[Edit], *, expect_version: int | None = None, by: str = "",
    why: str = "", via: str = "", verified: bool = False,
) -> Edited:  # fmt: skip
    """Apply edits to a plan, all or none. Only what has not started can be edited.

    `edits` are the models of plans/edits.py: SetField, AddStep, RemoveStep, MoveStep, SkipStep, UnskipStep.
    `expect_version`: refuse if the plan has another version. `by` and `why` are recorded.
    `via` and `verified`: where the author spoke, and whether a login vouches for the name. Raises Refused
    (STALE_VERSION, TOO_LATE, ...), InvalidPlan with every problem of the edited plan, PlanClosed, NoWorker.
    """
    message = EditPlan(edits=list(edits), expect_version=expect_version, by=by, comment=why, **_spoke(via, verified))
    return Edited.model_validate(
        await update(client, plan, "edit", message.model_dump(mode="json", exclude_unset=True))
    )


async def regenerate(
    client: Client, plan: str, feedback: str, *, expect_version: int | None = None, by: str = "", via: str = "",
    verified: bool = False,
) -> Edited:  # fmt: skip
    """Have the LLM revise the steps that have not started; the plan is in review afterwards. Waits for the LLM.

    Raises as `edit`, and PlanErrors with LLM_ codes, which leave the plan unchanged.
    """
    message = Regenerate(feedback=feedback, expect_version=expect_version, by=by, **_spoke(via, verified))
    given = message.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    answer = await update(client, plan, "regenerate", given)
    return Edited.model_validate(answer)


def _spoke(via: str, verified: bool) -> dict[str, Any]:
    """The fields of a message about how its author spoke, as far as set: workers of before know none of them."""
    return ({"via": via} if via else {}) | ({"verified": True} if verified else {})


async def regenerated(
    client: Client, plan: str, feedback: str, *, expect_version: int | None = None, by: str = ""
) -> tuple[Edited, PlanDiff]:
    """As `regenerate`, and what differs between the plan before and the plan after, step by step."""
    before = plan_of(await plan_file(client, plan))
    edited = await regenerate(client, plan, feedback, expect_version=expect_version, by=by)
    return edited, plan_diff(before, plan_of(await plan_file(client, plan)))


async def plan_file(client: Client, plan: str) -> dict[str, Any]:
    """The current version of the plan as the data of a plan file, without statuses and results."""
    return dict(await ask(client, plan, "file"))


async def update(
    client: Client, plan: str, name: str, message: dict[str, Any], patience: float = RPC_TIMEOUT.total_seconds()
) -> dict[str, Any]:
    """Send an update and wait for its result, without a time limit once a worker has accepted it.

    `patience`: seconds until a worker must have accepted it. Raises Refused, InvalidPlan with every problem,
    PlanClosed, PlanNotFound; NoWorker if no worker accepts it in time. What is too large is refused without sending it.
    """
    check_size(message, MAX_BYTES if name == "edit" else MESSAGE_BYTES)
    handle = client.get_workflow_handle(workflow_id(plan))
    try:
        with about(plan):
            # Accepted first, with a deadline; the result may take as long as an LLM, so it has none.
            accepted = await handle.start_update(
                name, message, wait_for_stage=WorkflowUpdateStage.ACCEPTED, rpc_timeout=timedelta(seconds=patience)
            )
            return dict(await accepted.result())
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error
    except RPCTimeoutOrCancelledError as error:
        text = f"no worker accepted the message for plan '{plan_id(plan)}' within {patience:g} s"
        raise NoWorker(f"{text}; `plan doctor` shows the workers, `plan worker` starts one") from error


def _refusal(cause: BaseException | None) -> PlanError:
    if not isinstance(cause, ApplicationError):
        return PlanError(str(cause), "REFUSED")
    detail = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    problems = [Problem.model_validate(each) for each in detail.get("problems", [])]
    if problems:
        return InvalidPlan(problems)
    if cause.type == "AcceptedUpdateCompletedWorkflow":
        return PlanClosed("the plan ended before the message was handled; `plan summary` shows how it ended")
    kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
    return kind(cause.message, cause.type)

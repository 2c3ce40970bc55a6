"""Edits to a plan, sent as updates; each returns the new version and a diff.

await edits.edit(client, "p", [SetField(op="set", step_id="s2", path="args.path", value="b.txt")], by="ann")
await edits.regenerate(client, "p", "write the tests first")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from temporalio.client import Client

from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff, plan_of
from plansurvive.client.rpc import ask
from plansurvive.client.updates import update
from plansurvive.plans.edits import Edit, EditPlan, Regenerate
from plansurvive.plans.model import Value


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
    """The fields of a message about how its author spoke, as far as set."""
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

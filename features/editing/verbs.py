"""Sends edits to a plan; the answer has the new version and what has changed.

await verbs.edit(client, "p", [SetField(op="set", step_id="s2", path="args.path", value="b.txt")], by="ann")
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client

from plansurvive.client.decisions import authored
from plansurvive.client.errors import EditRefused
from plansurvive.client.updates import update
from plansurvive.features.editing.messages import MAX_BYTES, EditPlan
from plansurvive.plans.editing.edits import Edit
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.execution.revision import Edited


async def edit(
    client: Client, plan: str, edits: Sequence[Edit], *, expect_version: int | None = None, by: str = "",
    why: str = "", via: Via = "", verified: bool = False,
) -> Edited:  # fmt: skip
    """Apply edits to a plan, all or none. Only what has not started can be edited.

    `edits` are the models of plans/editing/edits.py: SetField, AddStep, RemoveStep, MoveStep, SkipStep, UnskipStep.
    `expect_version`: refuse if the plan has another version. `by` and `why` are recorded.
    `via` and `verified`: where the author spoke, and whether a login vouches for the name. Raises Refused
    (STALE_VERSION, TOO_LATE, ...), EditRefused with every problem of the edited plan, PlanClosed, NoWorker.
    """
    message = EditPlan(
        edits=list(edits), expect_version=expect_version, comment=why, **authored(by, via, verified=verified)
    )
    sent = message.model_dump(mode="json", exclude_unset=True)
    try:
        return Edited.model_validate(await update(client, plan, "edit", sent, max_bytes=MAX_BYTES))
    except InvalidPlan as error:
        raise EditRefused(error.problems) from error

"""Editing a plan: one typed function per change, each answered with the new version and what became different.

await editing.edit(client, "p", [SetField(op="set", step_id="s2", path="args.path", value="b.txt")], by="ann")
await editing.regenerate(client, "p", "write the tests first")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio.client import Client

from client.rpc import ask
from client.updates import update
from plans.edits import Edit, EditPlan, Regenerate
from plans.model import Value


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

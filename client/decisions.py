"""Sends decisions and controls (approve, deny, begin, pause, clear_session, ...) to a plan."""

from __future__ import annotations

from typing import Any, Literal

from temporalio.client import Client

from plansurvive.client.updates import update
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.model import Value
from plansurvive.plans.run import Decision
from plansurvive.plans.views.models.card import Card

Control = Literal["begin", "pause", "unpause", "clear_session"]


class Choice(Value):
    """A person's decision about one step, for `approve`, `deny` and `decide`."""

    step_id: str
    by: str = ""
    """Who decides; recorded in the plan."""
    comment: str = ""
    """Recorded in the plan."""
    args: dict[str, Any] | None = None
    """Arguments to run the step with instead of its own; approvals only."""
    version: int | None = None
    """The plan version that was decided on (`Pending.version`); the decision is refused if the plan has another one."""
    digest: str | None = None
    """The call that was decided on (`Pending.digest`, `CallView.digest`); the decision is refused if it is another."""
    remember: bool = False
    """Also approve further calls of this tool, in this run: with the same network access, queue and workspace."""
    override: bool = False
    """Approve alone, in place of all who must, where the operator's policy lets `by`; `comment` says why."""
    via: Via = ""
    """Where the person decides; empty: by command or program."""
    verified: bool = False
    """Whether a login has verified `by`. Recorded only where decisions are signed: others could claim it."""

    def naming(self, item: Card) -> Choice:
        """The choice about exactly what `item` shows; by version where it has no digest."""
        return self.model_copy(update={"digest": item.digest} if item.digest else {"version": item.version})

    def message(self) -> dict[str, Any]:
        """The JSON message that the plan expects, without what is not said."""
        unused = {name for name in ("remember", "override", "via", "verified") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude_none=True, exclude=unused)


async def decide(client: Client, plan: str, choice: Choice, *, approved: bool) -> Decision:
    """Send the decision; returns it as the plan recorded it. Raises as `update`; Refused has the plan's sentence."""
    given = choice if approved else choice.model_copy(update={"args": None})
    return Decision.model_validate(await update(client, plan, "decide", given.message() | {"approved": approved}))


async def control(
    client: Client, plan: str, verb: Control, by: str = "", via: Via = "", verified: bool = False,
    version: int | None = None,
) -> str:  # fmt: skip
    """Begin, pause or unpause a plan, or clear its session; returns the plan's sentence about it. Raises as `decide`.

    `version`: of the plan that was reviewed, to begin no other.
    """
    message = authored(by, via, verified=verified) | ({} if version is None else {"version": version})
    return str((await update(client, plan, "control", {"action": verb, **message}))["text"])


def authored(by: str, via: Via, *, verified: bool) -> dict[str, Any]:
    """The part of a message that says who speaks, as far as it is said."""
    return {name: each for name, each in (("by", by), ("via", via), ("verified", verified)) if each}
